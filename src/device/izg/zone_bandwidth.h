// MeasureZoneBandwidth: how fast the medium programs one zone.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/izg/prober.h"

namespace isozone {

struct ZoneBandwidth {
  uint64_t bytes_per_second = 0;  // 0: no zone could be measured
  uint64_t bytes_written = 0;     // for the measurement; they are reset
};

// Writes one empty zone of `zones` alone. Only its later writes count, when the buffer of the device is full. If
// writing fails, another zone is tried; other errors are those of the prober.
Result<ZoneBandwidth> MeasureZoneBandwidth(Prober& prober, std::span<const ProbeZone> zones);

}  // namespace isozone
