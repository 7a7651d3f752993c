#include "store/zone/published/level_placement.h"

namespace isozone {
namespace {

std::optional<ZoneId> IdleOfLevel(const ZoneTable& table, const PlacementQuery& query) {
  std::optional<ZoneId> fullest;
  for (int lifetime = 0; lifetime < kLifetimeCount; ++lifetime) {
    // A level outlives a change of its hint.
    const bool same = static_cast<Lifetime>(lifetime) == query.lifetime;
    if (query.level == DataClass::kNoLevel && !same) continue;
    const ZoneTable::IdleByRoom& idle = table.Idle(ZoneUse::kData, static_cast<Lifetime>(lifetime), query.heat);
    for (auto it = idle.lower_bound({query.min_room, ZoneId(0)}); it != idle.end(); ++it) {
      if (table.at(it->second).data.level != query.level) continue;
      if (!fullest || it->first < table.at(*fullest).room()) fullest = it->second;
      break;
    }
  }
  return fullest;
}

}  // namespace

Placement LevelPlacement::PlaceData(const ZoneTable& table, const PlacementQuery& query) const {
  using Action = Placement::Action;
  if (const auto zone = IdleOfLevel(table, query)) return {Action::kUseIdle, *zone};
  if (query.can_open()) return {Action::kOpenEmpty, *table.empty().First()};
  const auto any = ClosestDeathIdle(table, query);
  if (query.empty_available) return {Action::kNeedToken, any};
  if (any) return {Action::kUseIdle, *any};
  return {Action::kNeedSpace, {}};
}

}  // namespace isozone
