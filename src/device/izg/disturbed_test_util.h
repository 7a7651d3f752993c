// Devices and hosts that are not ideal, for tests of identification and its measurement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "device/izg/virtual_prober_test_util.h"
#include "device/izg/zone_groups.h"

namespace isozone {

struct Disturbed {
  const char* name;
  Disturbances disturbances;
  bool may_refuse = false;    // otherwise the result is right with every fixed seed
  double reads_a_zone = 8.5;  // at most, with the fixed seeds, on 6,000 zones, of which 2 do not depend on the zones
};

// What follows is on top of an everyday noise: 3 % of every latency, and one read in a thousand up to 10 ms late.
inline constexpr Disturbances Everyday(Disturbances disturbances) {
  if (disturbances.deviation == 0) disturbances.deviation = 0.03;
  if (disturbances.spikes == 0) disturbances.spikes = 0.001;
  disturbances.spikes_vary = true;
  return disturbances;
}

inline constexpr int64_t kMs = kMillisecondNs;

inline const Disturbed kDisturbed[] = {
    {"Quiet", Everyday({})},
    {"Noise", Everyday({.deviation = 0.1, .spikes = 0.01}), false, 10},
    {"HeavyNoise", Everyday({.deviation = 0.15, .spikes = 0.05}), true, 20},
    {"ColdMap", Everyday({.map_part = 4 * kMiB, .map_parts = 4096, .map_miss_ns = kMs}), false, 9.5},
    {"ColdMapAsLongAsAPivot", Everyday({.map_part = 4 * kMiB, .map_parts = 4096, .map_miss_ns = 5 * kMs / 2}), false,
     9.5},
    {"ColdMapThatNeverFits", Everyday({.map_part = 4 * kMiB, .map_parts = 64, .map_miss_ns = kMs / 5}), true, 40},
    {"ColdMapOfOldData", Everyday({.map_part = 4 * kMiB, .map_parts = 4096, .map_miss_ns = kMs, .old_data = 16 * kMiB}),
     false, 9.5},
    {"Drift", Everyday({.drift = 0.6, .drift_reads = 8000})},
    {"DriftToLess", Everyday({.drift = -0.3, .drift_reads = 8000})},
    {"Background", Everyday({.background_every_ns = 20 * kMs, .background_erases = 4}), false, 9.5},
    {"HeavyBackground", Everyday({.background_every_ns = 4 * kMs, .background_erases = 8}), true, 20},
    {"SmallMemory", Everyday({.memory = 4 * kMiB})},
    {"MemoryOfABatch", Everyday({.memory = 48 * kMiB})},
    {"LargeMemory", Everyday({.memory = 400 * kMiB}), false, 24},
    {"HugeMemory", Everyday({.memory = 16 * kGiB}), true},
    {"BusyHost", Everyday({.pauses = 0.02, .pause_ns = kMs / 5})},
    {"VeryBusyHost", Everyday({.spikes = 0.02, .pauses = 0.02, .pause_ns = 2 * kMs}), true, 30},
    {"Everything",
     Everyday({.deviation = 0.06,
               .spikes = 0.005,
               .pauses = 0.005,
               .pause_ns = kMs / 5,
               .map_part = 4 * kMiB,
               .map_parts = 4096,
               .map_miss_ns = kMs,
               .drift = 0.3,
               .drift_reads = 8000,
               .background_every_ns = 40 * kMs,
               .background_erases = 3,
               .memory = 4 * kMiB}),
     true, 12},
};

// Returns how many zones are in a group that is mostly another die's, or on a die that is mostly in another group.
// Zones whose group is unknown do not count.
inline size_t WrongZones(const ZoneGroups& groups, const VirtualProber& prober) {
  std::map<uint32_t, std::map<uint32_t, size_t>> dies, groups_of_die;
  for (uint32_t zone = 0; zone < prober.geometry().zone_count; ++zone) {
    const uint16_t group = groups.group_of_zone[zone];
    if (group == ZoneGroups::kUnknown) continue;
    ++dies[group][prober.DieOf(zone)];
    ++groups_of_die[prober.DieOf(zone)][group];
  }
  const auto minority = [](const auto& sets) {
    size_t zones = 0;
    for (const auto& [key, counts] : sets) {
      size_t all = 0, most = 0;
      for (const auto& [other, count] : counts) all += count, most = std::max(most, count);
      zones += all - most;
    }
    return zones;
  };
  return std::max(minority(dies), minority(groups_of_die));
}

}  // namespace isozone
