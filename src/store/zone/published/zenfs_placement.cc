#include "store/zone/published/zenfs_placement.h"

namespace isozone {
namespace {

std::optional<ZoneId> IdleOf(const ZoneTable& table, const PlacementQuery& query, int lifetime) {
  return table.IdleWithRoom(ZoneUse::kData, static_cast<Lifetime>(lifetime), query.min_room, query.heat);
}

bool HasLifetime(Lifetime lifetime) { return lifetime != Lifetime::kNotSet && lifetime != Lifetime::kNone; }

std::optional<ZoneId> GoodMatch(const ZoneTable& table, const PlacementQuery& query) {
  const int lifetime = static_cast<int>(query.lifetime);
  if (!HasLifetime(query.lifetime)) return IdleOf(table, query, lifetime);
  for (int longer = lifetime + 1; longer < kLifetimeCount; ++longer) {
    if (auto zone = IdleOf(table, query, longer)) return zone;
  }
  return std::nullopt;
}

}  // namespace

Placement ZenfsPlacement::PlaceData(const ZoneTable& table, const PlacementQuery& query) const {
  using Action = Placement::Action;
  // Data that lives longer keeps the zone from dying anyway, so the file adds no zone to collect.
  if (auto zone = GoodMatch(table, query)) return {Action::kUseIdle, *zone};
  // A fresh zone keeps files of equal lifetime, whose real ends differ, apart.
  if (query.can_open()) return {Action::kOpenEmpty, *table.empty().First()};
  // Equal lifetimes in one zone are better than a finish, which throws room away.
  if (auto zone = IdleOf(table, query, static_cast<int>(query.lifetime))) return {Action::kUseIdle, *zone};
  // A finish is better than data of other lifetimes in one zone; but the file does not wait for it.
  if (query.empty_available) return {Action::kNeedToken, LongestLivedIdle(table, query.min_room)};
  // Other lifetimes in one zone are better than no space.
  if (auto zone = LongestLivedIdle(table, query.min_room)) return {Action::kUseIdle, *zone};
  return {Action::kNeedSpace, {}};
}

}  // namespace isozone
