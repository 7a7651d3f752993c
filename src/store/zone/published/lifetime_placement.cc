#include "store/zone/published/lifetime_placement.h"

namespace isozone {

Placement LifetimePlacement::PlaceData(const ZoneTable& table, const PlacementQuery& query) const {
  using Action = Placement::Action;
  if (auto zone = table.IdleWithRoom(ZoneUse::kData, query.lifetime, query.min_room, query.heat))
    return {Action::kUseIdle, *zone};
  if (query.can_open()) return {Action::kOpenEmpty, *table.empty().First()};
  return {query.empty_available ? Action::kNeedToken : Action::kNeedSpace, {}};
}

}  // namespace isozone
