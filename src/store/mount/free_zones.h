// Zones that a tool may write and reset on a device whose file system is not mounted.
#pragma once

#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

struct FreedZones {
  // The empty zones, in order, in which the file system on the device has nothing, which it does not keep for its
  // metadata, and which no reader in another process pins.
  std::vector<ZoneId> free;
  // For each zone, the bytes from its start that were certainly written. In a zone that was finished early, reading
  // what lies behind takes no time.
  std::vector<uint64_t> written;
};

// Resets free zones that are not empty, which a killed tool or a power cut has left, as the file system would do. If
// nothing is written to the zones in which file systems begin, resets nothing, and these zones are not free: a tool
// that is killed must leave a device that can be formatted. Otherwise returns the errors of RecoverMetadata, because a
// damaged or unknown file system may need any zone. `device` must be open for writing.
Result<FreedZones> FreeUpZones(ZonedDevice& device);

}  // namespace isozone
