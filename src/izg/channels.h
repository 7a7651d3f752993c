// The second level: groups whose dies share a channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "izg/bursts.h"

namespace isozone {

// Numbers the channels of groups, given a prepared pivot of each, in the order of their first groups. Pivots are read a
// few at a time, so that nothing but a channel can be short: a pair that takes longer together than most pairs shares
// one. The effect is small (a tenth, in ZenFS+ Fig. 3), so every pair is looked at many times, and groups are joined by
// the average over all pairs between them; where that leaves a doubt, they are looked at again.
Result<std::vector<uint16_t>> FindChannels(Bursts& bursts, std::span<const ZoneId> pivots, uint64_t seed);

}  // namespace isozone
