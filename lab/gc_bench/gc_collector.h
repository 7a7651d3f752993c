// Stage 3 of the collector benchmark: reclaims a given number of free blocks with one of the two schemes of the LSM_ZGC
// paper, or with the default scheme of a mounted file system, timed.
//
//   basic     reads the valid blocks of a victim, adjacent ones joined; its survivors go to one zone of their own
// lsm-zgc reads a victim segment by segment, mostly in groups (store/zone/segment_plan.h); its survivors go to zones by
//             heat (store/zone/heat.h)
//   isozone   reads like `basic`, as many blocks; chooses victims and zones of survivors as the scheme `isozone` does
//             for data that is in no LSM tree: by age and by heat (store/zone/gc_scheme.h)
//
// All run on one engine. The reads of a victim are in flight together. Their blocks gather in order in the buffer of
// their destination, which is written while the next buffer fills. When its last survivor is written, the victim is
// reset. `depth` limits the commands in flight, reads and writes together; with 1, there is one command at a time. So
// the schemes differ in what they read, where survivors go, and the depth that they are given.
//
// What the paper leaves open, and what this benchmark does:
//  * The victim of LSM_ZGC. The paper gives a rule for Basic_ZGC (the smallest utilisation) and says of LSM_ZGC only
//    that separation "allows to select a candidate zone that has lower utilization". Both take the smallest
//    utilisation; among equals the zone that was opened first. Zones that are still being written are not victims.
//  * What is pipelined. The paper pipelines the segments of a victim. Here, the reads of the next victim also begin
//    while the last survivors of one are being written.
//  * Where the survivors of Basic_ZGC go. "A new zone", which here takes no new data afterwards, so that it separates
//    new from old as well as possible. With mix_survivors, they are written behind new data, as in one log.
//  * What the number of blocks to reclaim counts. Here, the invalid blocks of the victims, which become free.
//
// Thread safety: none; one round of GC uses a volume.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "gc_bench/gc_volume.h"
#include "store/zone/segment_plan.h"

namespace isozone::cli {

enum class CollectScheme : uint8_t { kBasic, kLsmZgc, kIsozone };
// "basic", "lsm-zgc", "isozone".
std::string_view CollectSchemeName(CollectScheme scheme);

struct CollectOptions {
  CollectScheme scheme = CollectScheme::kBasic;
  uint64_t reclaim_blocks = 0;  // free blocks at least; more than 0
  uint32_t depth = 1;           // commands in flight at most; at least 1
  SegmentRules rules = {};      // block_size and request_size are fitted to the device
  bool mix_survivors = false;   // for kBasic
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

// `progress` gets the blocks reclaimed so far. kNoSpace if the zones do not have that many invalid blocks.
Result<CollectResult> Collect(GcVolume& volume, const CollectOptions& options,
                              const std::function<void(uint64_t)>& progress);

}  // namespace isozone::cli
