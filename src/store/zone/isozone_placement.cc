#include "store/zone/isozone_placement.h"

#include <algorithm>

#include "store/zone/group_choice.h"

namespace isozone {
namespace {

// Whether an idle zone of the query's class has room, even if it is kept from the query's cohort.
bool ClassHasRoom(const ZoneTable& table, const PlacementQuery& query) {
  const ZoneTable::IdleByRoom& idle = table.Idle(ZoneUse::kData, query.lifetime, query.heat);
  return std::any_of(idle.lower_bound({query.min_room, ZoneId(0)}), idle.end(), [&](const auto& entry) {
    const ZoneRecord& zone = table.at(entry.second);
    return zone.live > 0 && zone.data.level == query.level;
  });
}

}  // namespace

Placement IsozonePlacement::PlaceData(const ZoneTable& table, const PlacementQuery& query) const {
  using Action = Placement::Action;
  const GroupChoice choice(table, query);
  if (!query.cohort.none()) {
    if (const auto begun = choice.OfCohort()) return {Action::kUseIdle, begun->zone};
  }
  const auto empty = query.can_open() ? choice.Empty() : std::nullopt;
  if (query.cohort.own_zones && empty) return {Action::kOpenEmpty, empty->zone};
  if (query.cohort.own_zones && query.widen) return {Action::kNeedSpace, {}};
  auto idle = query.expected_size > query.min_room ? choice.Idle(query.expected_size) : std::nullopt;
  if (!idle) idle = choice.Idle();
  if (idle && (!empty || idle->rank.NoWorseThan(empty->rank))) return {Action::kUseIdle, idle->zone};
  if (empty) return {Action::kOpenEmpty, empty->zone};
  if (query.widen) return {Action::kNeedSpace, {}};
  const auto any = ClosestDeathIdle(table, query);
  // No zone is finished, and its rest lost, for want of one that a cohort keeps for itself.
  if (query.empty_available && !ClassHasRoom(table, query)) return {Action::kNeedToken, any};
  if (any) return {Action::kUseIdle, *any};
  return {Action::kNeedSpace, {}};
}

}  // namespace isozone
