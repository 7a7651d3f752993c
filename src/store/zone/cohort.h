// Cohort: files that will die together, as their writer knows. A cohort has a number. The file system does not ask what
// the number stands for: a level and the sweep over it, for example, or the files that the next compaction consumes.
//
//   together    A file of a cohort goes to a zone that its cohort has begun before it goes to any other zone.
//   own zones   The zones that the cohort has begun take no other data, and the cohort begins new ones, as long as
//               another zone can be had at once. If there is none, data is mixed, and that is counted. Nobody waits or
//               fails because of a cohort.
//   sealed      The zones that the cohort has begun take no more data, not even of the cohort, as long as there is
//               another zone. They are finished first if active zones run short. Later files of the cohort begin new
//               zones.
//
// What is known of a zone is forgotten when all data in it is dead, and it is not kept over a mount: the zones of old
// cohorts are ordinary zones then. Survivors of GC are ordinary data, too.
//
// Pure. Thread safety: a value.
#pragma once

#include <cstdint>

namespace isozone {

struct Cohort {
  uint64_t id = 0;  // 0: none
  bool own_zones = false;

  bool none() const { return id == 0; }
  bool operator==(const Cohort&) const = default;
};

// The room that is left for data of one class or cohort in partly written zones that no writer holds, and the zones
// that the cohort has in all.
struct ZoneRoom {
  uint64_t bytes = 0;    // bytes in all of these zones
  uint64_t largest = 0;  // bytes in the zone with the most
  uint32_t zones = 0;
  // The zones that the cohort has begun and in which something is live; full and sealed ones, and those with a writer,
  // count as well.
  uint32_t begun = 0;
  bool operator==(const ZoneRoom&) const = default;
};

}  // namespace isozone
