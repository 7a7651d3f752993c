#include "zone/isozone_placement.h"

#include "zone/group_choice.h"

namespace isozone {

Placement IsozonePlacement::PlaceData(const ZoneTable& table, const PlacementQuery& query) const {
  using Action = Placement::Action;
  const GroupChoice choice(table, query);
  const auto idle = choice.Idle();
  const auto empty = query.can_open() ? choice.Empty() : std::nullopt;
  if (idle && (!empty || idle->rank.NoWorseThan(empty->rank))) return {Action::kUseIdle, idle->zone};
  if (empty) return {Action::kOpenEmpty, empty->zone};
  if (query.widen) return {Action::kNeedSpace, {}};
  const auto any = ClosestDeathIdle(table, query);
  if (query.empty_available) return {Action::kNeedToken, any};
  if (any) return {Action::kUseIdle, *any};
  return {Action::kNeedSpace, {}};
}

}  // namespace isozone
