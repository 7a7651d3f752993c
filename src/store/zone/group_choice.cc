#include "store/zone/group_choice.h"

#include <algorithm>

namespace isozone {

std::optional<GroupChoice::Rank> GroupChoice::RankOf(uint32_t group) const {
  const GroupLoad load = query_.loads.empty() ? GroupLoad() : query_.loads[group];
  Rank rank;
  rank.taken = std::find(query_.taken_groups.begin(), query_.taken_groups.end(), group) != query_.taken_groups.end();
  if (query_.widen && rank.taken) return std::nullopt;
  const uint32_t groups = table_.groups().count();
  rank.turn = (group + groups - query_.turn % groups) % groups;
  if (!query_.isolate) return rank;
  const bool in_the_way = query_.urgent ? load.urgent > 0 : !load.idle();
  if (query_.widen && query_.keep_away && in_the_way) return std::nullopt;
  rank.urgent = load.urgent;
  rank.others = load.others;
  return rank;
}

std::optional<GroupChoice::Choice> GroupChoice::Empty() const {
  std::optional<Choice> best;
  for (uint32_t group = 0; group < table_.groups().count(); ++group) {
    const auto rank = RankOf(group);
    if (!rank || (best && best->rank <= *rank)) continue;
    if (const auto zone = table_.EmptyIn(group)) best = {*rank, *zone};
  }
  return best;
}

std::optional<GroupChoice::Choice> GroupChoice::Idle(uint64_t bytes) const {
  std::optional<Choice> best;
  const ZoneTable::IdleByRoom& idle = table_.Idle(query_.use, query_.lifetime, query_.heat);
  for (auto it = idle.lower_bound({bytes, ZoneId(0)}); it != idle.end(); ++it) {
    const ZoneRecord& zone = table_.at(it->second);
    if (zone.kept_from(query_.cohort.id)) continue;
    if (zone.live > 0 ? zone.data.level != query_.level : query_.live_only) continue;
    const auto rank = RankOf(table_.groups().of(it->second));
    if (rank && (!best || *rank < best->rank)) best = {*rank, it->second};
  }
  return best;
}

std::optional<GroupChoice::Choice> GroupChoice::OfCohort() const {
  std::optional<Choice> best;
  bool best_fits = false;
  for (size_t i = 0; i < size_t{kLifetimeCount} * kZoneHeatCount; ++i) {
    const auto heat = static_cast<ZoneHeat>(i % kZoneHeatCount);
    const ZoneTable::IdleByRoom& idle = table_.Idle(query_.use, static_cast<Lifetime>(i / kZoneHeatCount), heat);
    for (auto it = idle.lower_bound({query_.min_room, ZoneId(0)}); it != idle.end(); ++it) {
      const ZoneRecord& zone = table_.at(it->second);
      if (zone.cohort.id != query_.cohort.id || zone.sealed || zone.live == 0) continue;
      const auto rank = RankOf(table_.groups().of(it->second));
      const bool fits = it->first >= query_.expected_size;
      if (!rank || (best && (best_fits > fits || (best_fits == fits && best->rank <= *rank)))) continue;
      best = {*rank, it->second};
      best_fits = fits;
    }
  }
  return best;
}

}  // namespace isozone
