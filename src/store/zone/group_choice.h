// GroupChoice: chooses, among the zones that a writer could have, the one in the group with the least activity.
//
//   rank   1. a group in which the file has no zone
//          2. with isolation: the fewest logs and flushes (ZenFS+, section IV.C: a flush takes an idle group and marks
//             it busy, compaction takes what is left); then the fewest of all other writers
//          3. the first from `turn` on, so that writers spread over equal groups
//   widen  A file that has a zone takes another one only where it disturbs no other writer: a flush in a group without
//          logs and flushes, any other file in an idle group. This does not apply if there are too few groups
//          (keep_away): none is idle for long, and every file would be written to one zone at a time.
//
// The cost is one step for each group, and one for each idle zone of the lifetime; these are at most the active zones.
//
// Thread safety: none; an object lives for one decision.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "store/zone/placement_policy.h"

namespace isozone {

class GroupChoice {
 public:
  // The rank of a group for the file; a lower one is better.
  struct Rank {
    bool taken = false;
    uint32_t urgent = 0;
    uint32_t others = 0;
    uint32_t turn = 0;
    auto operator<=>(const Rank&) const = default;
    // Returns whether this rank is at least as good, whatever the turn.
    bool NoWorseThan(const Rank& other) const {
      return std::tie(taken, urgent, others) <= std::tie(other.taken, other.urgent, other.others);
    }
  };
  struct Choice {
    Rank rank;
    ZoneId zone;
  };

  GroupChoice(const ZoneTable& table, const PlacementQuery& query) : table_(table), query_(query) {}

  // Returns the best of the empty zones.
  std::optional<Choice> Empty() const;
  // Returns the best of the idle zones of the query's use and class that have room for `bytes` and are not kept from
  // its cohort.
  std::optional<Choice> Idle(uint64_t bytes) const;
  std::optional<Choice> Idle() const { return Idle(query_.min_room); }
  // Returns the best of the idle zones that the query's cohort has begun and not sealed, whatever their class; first
  // those that have room for all that is expected.
  std::optional<Choice> OfCohort() const;

 private:
  // Returns the rank of a group; empty if this writer must not use it.
  std::optional<Rank> RankOf(uint32_t group) const;

  const ZoneTable& table_;
  const PlacementQuery& query_;
};

}  // namespace isozone
