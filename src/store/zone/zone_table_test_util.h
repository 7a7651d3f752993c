// What the tests of the zone table and of placement share: zones as an empty device reports them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "device/zoned_device.h"

namespace isozone {

inline constexpr uint64_t kCapacity = 64 * kKiB;
inline constexpr uint64_t kBlock = 4 * kKiB;

inline std::vector<ZoneDescriptor> EmptyZones(uint32_t count) {
  std::vector<ZoneDescriptor> report(count);
  for (uint32_t i = 0; i < count; ++i) report[i] = {ZoneId(i), ZoneState::kEmpty, kCapacity, 0};
  return report;
}

}  // namespace isozone
