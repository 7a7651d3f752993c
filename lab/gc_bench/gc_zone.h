// What collecting one zone costs, and reading one: Fig. 1 and 2 of the LSM_ZGC paper, section 2.2. One command at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/zoned_device.h"

namespace isozone::cli {

struct ReclaimPoint {
  double utilisation = 0;
  uint64_t valid_blocks = 0;
  double seconds = 0;  // copying the valid blocks one by one, and the reset
};

struct GroupPoint {
  uint64_t request = 0;  // bytes
  double seconds = 0;    // of reading the zone
};

// Fig. 1: for each of `utilisations` (0..1), fills `from`, draws valid blocks of 4 KiB by `seed`, and copies them to
// `to`. Both zones are empty before and after. `progress` gets the number of points measured.
Result<std::vector<ReclaimPoint>> MeasureReclaim(ZonedDevice& device, ZoneId from, ZoneId to,
                                                 std::span<const double> utilisations, uint64_t seed,
                                                 const std::function<void(uint64_t)>& progress);

// Fig. 2: fills `zone`, reads all of it in requests of 4, 8, ... 128 KiB (up to the limit of the device), and resets
// it. The zone is empty before and after.
Result<std::vector<GroupPoint>> MeasureGroups(ZonedDevice& device, ZoneId zone,
                                              const std::function<void(uint64_t)>& progress);

}  // namespace isozone::cli
