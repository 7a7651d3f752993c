// FindChannels: finds which zone groups share a channel, the second level of ZoneGroups.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device/izg/latency_probe.h"

namespace isozone {

struct Channels {
  std::vector<uint16_t> channel_of_group;
  // Pairs of groups that slow one another so much that they may share a die, the smaller one first.
  std::vector<std::pair<size_t, size_t>> perhaps_one_group;
};

// Finds the channels of groups. `pivots` holds one prepared pivot for each group; channels are numbered in the order of
// their first groups. A few pivots are read at a time, so that only a channel can be a bottleneck: a pair of groups
// that takes longer together than most pairs shares a channel. The effect is small (a tenth, in ZenFS+ Fig. 3), so
// every pair is measured many times, and groups are joined by the average over all pairs between them. If the result is
// not clear, the groups are measured again.
Result<Channels> FindChannels(LatencyProbe& probe, std::span<const ZoneId> pivots, uint64_t seed);

}  // namespace isozone
