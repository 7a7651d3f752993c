// Finding the independent zone groups of a device by latency alone: pivots and needles (ZenFS+, section III.A and
// Fig. 5), with far fewer reads than zones x groups.
//
// A *pivot* keeps its die busy: large reads of one zone of a known group. A *needle* is a small read of another zone,
// sent right behind. It is *loud* if it had to wait for the pivot, which means that both zones share a die, and *quiet*
// otherwise. Many needles go in one burst, so a pivot is paid once.
//
//   calibrate  How large a pivot must be to be told from a crowd of needles, and where quiet ends and loud begins, comes
//              from the device itself: needles of the pivot's own zone are loud, needles without a pivot quiet. If even
//              a needle of the pivot's own zone is never loud, no zone slows another, and that is the result.
//   halve      The groups are numbered in pairs. Of each bit of a pair's number one burst has as pivots all groups with
//              that bit: so each needle finds its pair in log2(pairs) reads.
//   confirm    One burst with both groups of a pair as pivots, the second of them several times as large: a needle
//              is quiet, loud, or louder. Only this makes a zone a member; what went wrong before it costs reads only.
//   found      A zone that no known pair confirms is held against every group by itself; if it is quiet beside all, it
//              is the pivot of a new group, and the other strangers its needles. The first batch of zones starts here.
//
// Before halving, a zone is tried with the pair of the group that came up last time after the same two groups. So most
// mappings cost little more than one read a zone, but nothing rests on it: a wrong guess is not confirmed.
//
// Doubtful latencies (between quiet and loud, or longer than any pivot explains) are measured again. If needles that are
// late for other reasons look loud more often than once in ten thousand, every confirmation is repeated, and both must
// agree.
//
// Blocks that cannot be read are left out. A zone that has too many of them, or cannot be written or emptied, is set aside,
// and the measurement begins anew without it; it stays unknown.
//
// What the medium programs a second of one zone comes last: of one zone that is written alone, the later writes, when
// what the device buffers is full.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "izg/prober.h"
#include "izg/zone_groups.h"

namespace isozone {

struct IdentifyOptions {
  uint64_t seed = 1;  // of which zones and blocks are looked at first
  // Called before every burst, with how many zones were placed so far; fewer than before where it begins anew.
  std::function<void(uint64_t zones_done, uint64_t zones)> progress;
  std::function<bool()> cancelled;  // asked before every burst; true ends it with kAborted
};

struct IdentifyReport {
  ZoneGroups groups;
  uint64_t zones = 0;  // looked at
  uint64_t reads = 0;  // pivots and needles
  uint64_t bursts = 0;
  int64_t burst_ns = 0;            // time that the device spent reading
  uint64_t bytes_prepared = 0;     // written, and reset afterwards
  double false_loud = 0;           // chance that one needle seems louder than it is
  uint64_t unreadable_blocks = 0;  // left out
  struct SetAside {
    ZoneId zone;
    Status why;
  };
  std::vector<SetAside> set_aside;  // zones that stay unknown
};

// kNoSpace if there is no zone to be looked at, or none to write where that is needed; kBusy where this host cannot tell
// what waits from what does not; kNotSupported for more groups than ZoneGroups holds; kAborted; else the
// prober's errors, if they are not of single zones or of more than a few. Zones that were empty are empty
// again in either case, as far as the device allows.
Result<IdentifyReport> IdentifyZoneGroups(Prober& prober, const IdentifyOptions& options);

}  // namespace isozone
