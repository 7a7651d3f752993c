// Finds the independent zone groups of a device by latency alone, with pivots and needles (ZenFS+, section III.A and
// Fig. 5), but with far fewer reads than zones x groups.
//
// A *pivot* consists of large reads of one zone of a known group, which keep its die busy. A *needle* is a small read
// of another zone, sent right behind the pivot. If it is *delayed*, it had to wait for the pivot, which means that both
// zones share a die. If it is *undelayed*, they do not. Many needles share one burst, and so the cost of its pivot
// (latency_probe.h).
//
//   calibrate  The device itself shows how large a pivot must be, and which latencies mean a delay: needles of the
//              pivot's own zone are delayed, needles without a pivot are not.
//   halve      The groups are numbered in sets of four. For each bit of the numbers of the sets there is one burst,
//              whose pivots are all groups with that bit set. So each needle finds its set in log2(sets) reads.
//   confirm    One burst has the groups of a set as pivots, each with three times the load of the one before. So the
//              latency of a needle says which of them delayed it, if any. Only a confirmation makes a zone a member of
//              a group; a mistake of an earlier step costs reads, but never a wrong result. If zones that were
//              confirmed may be wrong (doubts.h), they are confirmed again, with the loads reversed.
//   found      A zone that no known set confirms is measured against every group by itself. If none delays it, it
//              becomes the pivot of a new group, and the other zones without a group its needles. The first batch of
//              zones starts here.
//   settle     The pivots of all groups are read together (channels.h). Two groups that slow one another as much as one
//              die does are one group.
//
// Before halving, a zone is tried with a guess: the group that followed the last time after the same two groups. So
// most mappings cost little more than one read a zone. The result does not depend on guesses: a wrong one is not
// confirmed.
//
// Doubtful latencies are measured again. If the first read of an area takes longer than others, zones are read once
// before they are measured.
//
// A device may answer reads of what was just written from memory, and then no needle is delayed. So a zone founds a
// group only if its own pivot delays its needles. If needles turn out to come from memory, the measurement starts
// again, and more is written before anything is read (Preparation, latency_probe.h). If even that does not help, there
// is no result. If no needle is ever delayed, no zone slows another, and identification ends with that result.
//
// Blocks that cannot be read are avoided. A zone that has too many of them, or that cannot be written or reset, is left
// out: its group stays unknown, and the measurement starts again without it.
//
// The bandwidth of a zone is measured last. One zone is written alone, and only its later writes count, when the buffer
// of the device is full.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/izg/prober.h"
#include "device/izg/zone_groups.h"

namespace isozone {

struct IdentifyOptions {
  uint64_t seed = 1;  // decides which zones and blocks are read
  // Is called before every burst with the number of zones whose group is known. It falls when the measurement starts
  // again.
  std::function<void(uint64_t zones_done, uint64_t zones)> progress;
  std::function<bool()> cancelled;  // called before every burst; true ends identification with kAborted
};

struct IdentifyReport {
  ZoneGroups groups;
  uint64_t zones = 0;  // measured
  uint64_t reads = 0;  // pivots and needles
  uint64_t bursts = 0;
  int64_t burst_ns = 0;            // time that the device spent reading
  uint64_t bytes_prepared = 0;     // written, and reset afterwards
  double false_interference = 0;   // the chance that a needle shows more interference than there is, as it was seen
  double may_be_wrong = 0;         // upper bound of the probability that any zone is in a wrong group
  std::string caveat;              // one line on what the result assumes of the device; empty: nothing
  uint64_t filler = 0;             // bytes written after zones were prepared, since the device answers from memory
  uint64_t unreadable_blocks = 0;  // blocks that were avoided
  struct LeftOut {
    ZoneId zone;
    Status why;
  };
  std::vector<LeftOut> left_out;  // their groups stay unknown
};

// Identifies the groups of all zones of `prober`. kNoSpace if there is no zone to measure, or none that may be written
// where one is needed; kBusy if this host cannot tell delayed reads from undelayed ones, or the result would be
// uncertain; kNotSupported if the device answers reads from memory, or has more groups than ZoneGroups holds; kAborted
// if cancelled; otherwise an error of the prober, if it concerns more than a few single zones. In every case, zones
// that were empty are empty again, as far as the device allows.
Result<IdentifyReport> IdentifyZoneGroups(Prober& prober, const IdentifyOptions& options);

}  // namespace isozone
