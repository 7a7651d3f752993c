// Stage 3 of the collector benchmark: reclaims a given number of free blocks with one of the two schemes of the LSM_ZGC
// paper, timed.
//
//   basic     reads the valid blocks of a victim, adjacent ones joined; its survivors go to one zone of their own
//   lsm-zgc   reads a victim segment by segment, mostly in groups (zone/segment_plan.h); its survivors go to zones by
//             heat (zone/heat.h)
//
// Both run on one engine: the reads of a victim are in flight side by side; their blocks gather in order in the buffer
// of their destination, which is written while the next one fills; when its last survivor is written, the victim is
// reset. `depth` bounds the commands in flight, reads and writes together; 1 does one thing after another. So the
// schemes differ in what they read, where survivors go, and how deep they are told to go.
//
// What the paper leaves open, and how it is decided here:
//  * The victim of LSM_ZGC. The paper gives a rule for Basic_ZGC (the smallest utilisation) and says of LSM_ZGC only
//    that separation "allows to select a candidate zone that has lower utilization". Both take the smallest
//    utilisation; among equals the zone that was opened first. Zones that are still being written are not victims.
//  * What is pipelined. The paper pipelines the segments of a victim. Here the next victim's reads begin as well while
//    the last survivors of one are on their way.
//  * Where the survivors of Basic_ZGC go. "A new zone", which here takes no new data afterwards, so that it separates
//    new from old as well as it can. mix_survivors has them go behind new data, as in one log.
//  * The number of blocks to reclaim: of free blocks, the invalid ones of the victims.
//
// Thread safety: none; one collection uses a volume.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "isozone/bench/gc/gc_volume.h"
#include "zone/segment_plan.h"

namespace isozone::cli {

enum class CollectScheme : uint8_t { kBasic, kLsmZgc };
// "basic", "lsm-zgc".
std::string_view CollectSchemeName(CollectScheme scheme);

struct CollectOptions {
  CollectScheme scheme = CollectScheme::kBasic;
  uint64_t reclaim_blocks = 0;  // free blocks at least; more than 0
  uint32_t depth = 1;           // commands in flight at most; at least 1
  SegmentRules rules = {};      // block_size and request_size are fitted to the device
  bool mix_survivors = false;   // of kBasic
};

struct CollectResult {
  double seconds = 0;
  uint64_t blocks_copied = 0;
  uint64_t blocks_reclaimed = 0;
  uint64_t zones_reset = 0;
  uint64_t reads = 0;       // commands
  uint64_t bytes_read = 0;  // invalid blocks included
  uint64_t writes = 0;      // commands
  uint64_t depth_max = 0;   // the most commands in flight at once
  UtilisationHistogram before{};
  UtilisationHistogram after{};
};

// `progress` gets the blocks reclaimed so far. kNoSpace where the zones have not so many invalid blocks.
Result<CollectResult> Collect(GcVolume& volume, const CollectOptions& options,
                              const std::function<void(uint64_t)>& progress);

}  // namespace isozone::cli
