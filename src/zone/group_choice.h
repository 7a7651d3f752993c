// GroupChoice: of the zones that a writer could have, the one in whose group least is going on.
//
//   rank   1. a group in which the file has no zone
//          2. with isolation: the fewest logs and flushes (ZenFS+, section IV.C: a flush takes an idle group and marks
//             it busy, compaction takes what is left); then the fewest of all other writers
//          3. the first from `turn` on, so that writers spread over equal groups
//   widen  A file that has a zone takes another one only where that is in nobody's way: of a group without logs and
//          flushes for a flush, of an idle group for anybody else. Not so where there are too few groups for that
//          (keep_away): none is idle for long, and all would write to one zone each.
//
// Costs one step a group, and one for each idle zone of the lifetime, of which there are no more than active zones.
//
// Thread safety: none; lives for one decision.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "zone/placement_policy.h"

namespace isozone {

class GroupChoice {
 public:
  // Lower is better.
  struct Rank {
    bool taken = false;
    uint32_t urgent = 0;
    uint32_t others = 0;
    uint32_t turn = 0;
    auto operator<=>(const Rank&) const = default;
    // Whoever's turn it is.
    bool NoWorseThan(const Rank& other) const {
      return std::tie(taken, urgent, others) <= std::tie(other.taken, other.urgent, other.others);
    }
  };
  struct Choice {
    Rank rank;
    ZoneId zone;
  };

  GroupChoice(const ZoneTable& table, const PlacementQuery& query) : table_(table), query_(query) {}

  // Among the empty zones.
  std::optional<Choice> Empty() const;
  // Among the idle zones of the query's use and class that have room.
  std::optional<Choice> Idle() const;

 private:
  // Empty: this writer must not go there.
  std::optional<Rank> RankOf(uint32_t group) const;

  const ZoneTable& table_;
  const PlacementQuery& query_;
};

}  // namespace isozone
