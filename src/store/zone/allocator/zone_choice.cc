#include "store/zone/allocator/zone_choice.h"

#include <algorithm>

#include "store/zone/allocator/zone_reserves.h"

namespace isozone {

PlacementQuery ZoneChoice::QueryFor(const ZoneRequest& request) const {
  const BudgetClass c = BudgetClassOf(request);
  PlacementQuery query;
  query.use = request.use;
  query.lifetime = request.lifetime;
  query.level = request.level;
  query.heat = request.heat;
  query.min_room = std::max<uint64_t>(request.min_room, ledger_.options.geometry.block_size);
  query.cohort = ledger_.CohortOf(request);
  query.expected_size = ledger_.heeds_cohorts ? request.expected_size : 0;
  query.live_only = request.gc;
  query.token_available = ledger_.active.Available(c) > 0;
  query.empty_available = ledger_.HasEmpty(c);
  query.urgent = request.urgent || request.use == ZoneUse::kLog;
  query.isolate = ledger_.options.isolation;
  query.keep_away = ledger_.options.keep_away;
  query.loads = ledger_.loads;
  query.turn = static_cast<uint32_t>(ledger_.next_lease);
  return query;
}

Placement ZoneChoice::Place(const PlacementQuery& query) const {
  return query.use == ZoneUse::kLog ? PlaceLog(ledger_.table, query) : policy_.PlaceData(ledger_.table, query);
}

uint64_t ZoneChoice::MostZones(const ZoneRequest& request) const {
  const uint64_t empty = ledger_.SpareZones() * ledger_.options.geometry.zone_capacity;
  const uint64_t live = std::max<uint64_t>(1, ledger_.table.LiveOf(request.data_class()));
  return empty >= live ? request.width : 1 + request.width * empty / live;
}

std::optional<ZoneId> ZoneChoice::Wider(const ZoneRequest& request) const {
  if (!ledger_.HasSpareTokens(ledger_.open) || request.taken_groups.size() >= MostZones(request)) return std::nullopt;
  PlacementQuery query = QueryFor(request);
  query.widen = true;
  query.taken_groups = request.taken_groups;
  query.token_available = ledger_.HasSpareTokens(ledger_.active);
  query.empty_available = ledger_.SpareZones() > 0;
  const Placement placement = Place(query);
  using Action = Placement::Action;
  const bool now = placement.action == Action::kUseIdle || placement.action == Action::kOpenEmpty;
  return now ? placement.zone : std::nullopt;
}

std::optional<ZoneId> ZoneChoice::Confined(const ZoneRequest& request) const {
  if (ledger_.open.Available(BudgetClassOf(request)) == 0) return std::nullopt;
  const auto zone = ClosestDeathIdle(ledger_.table, QueryFor(request));
  return zone && ledger_.table.at(*zone).live > 0 ? zone : std::nullopt;
}

ZoneRoom ZoneChoice::RoomOf(const DataClass& data, uint64_t cohort) const {
  const uint64_t id = ledger_.heeds_cohorts ? cohort : 0;
  ZoneRoom room;
  room.begun = ledger_.table.OfCohort(id);
  for (size_t i = 0; i < size_t{kLifetimeCount} * kZoneHeatCount; ++i) {
    const auto lifetime = static_cast<Lifetime>(i / kZoneHeatCount);
    for (const auto& [bytes, zone] :
         ledger_.table.Idle(ZoneUse::kData, lifetime, static_cast<ZoneHeat>(i % kZoneHeatCount))) {
      const ZoneRecord& record = ledger_.table.at(zone);
      const bool begun = record.live > 0 && record.cohort.id == id;
      if (record.kept_from(id) || (id == 0 ? record.data != data : !begun)) continue;
      ++room.zones;
      room.bytes += bytes;
      room.largest = std::max(room.largest, bytes);
    }
  }
  return room;
}

std::optional<ZoneId> ZoneChoice::ToBegin(std::span<const ZoneId> apart_from) const {
  if (const auto home = HomeZone(apart_from, /*apart=*/true)) return home;
  if (HomeZoneIsComing()) return std::nullopt;
  // A zone that is not a home zone is worse, but better than one in the group of the other copy.
  if (ledger_.HasEmpty(BudgetClass::kData)) {
    if (const auto other = OtherZone(apart_from, /*apart=*/true)) return other;
  }
  if (const auto home = HomeZone(apart_from, /*apart=*/false)) return home;
  if (const auto other = OtherZone(apart_from, /*apart=*/true)) return other;
  return OtherZone(apart_from, /*apart=*/false);
}

std::optional<ZoneId> ZoneChoice::ToGoOn(std::span<const ZoneId> apart_from) const {
  if (const auto other = OtherZone(apart_from, /*apart=*/true)) return other;
  if (const auto other = OtherZone(apart_from, /*apart=*/false)) return other;
  return HomeZone(apart_from, /*apart=*/false);
}

std::optional<ZoneId> ZoneChoice::HomeZone(std::span<const ZoneId> apart_from, bool apart) const {
  const bool told = ledger_.table.groups().count() > 1;
  for (uint32_t i = 0; i < HomeZones(ledger_.options.metadata_copies); ++i) {
    const ZoneRecord& zone = ledger_.table.at(ZoneId(i));
    if (zone.phase != ZonePhase::kEmpty || zone.set_aside) continue;
    if (!apart || !told || IsApart(ZoneId(i), apart_from)) return ZoneId(i);
  }
  return std::nullopt;
}

std::optional<ZoneId> ZoneChoice::OtherZone(std::span<const ZoneId> apart_from, bool apart) const {
  const ZoneTable& table = ledger_.table;
  if (!apart) return table.empty().First();
  if (table.groups().count() < 2) return std::nullopt;
  for (uint32_t group = 0; group < table.groups().count(); ++group) {
    const auto zone = table.EmptyIn(group);
    if (zone && IsApart(*zone, apart_from)) return zone;
  }
  return std::nullopt;
}

bool ZoneChoice::IsApart(ZoneId zone, std::span<const ZoneId> others) const {
  const GroupIndex& groups = ledger_.table.groups();
  const uint32_t group = groups.of(zone);
  return std::none_of(others.begin(), others.end(), [&](ZoneId other) { return groups.of(other) == group; });
}

bool ZoneChoice::HomeZoneIsComing() const {
  for (uint32_t i = 0; i < HomeZones(ledger_.options.metadata_copies); ++i) {
    const ZoneRecord& zone = ledger_.table.at(ZoneId(i));
    if (zone.at_device || (zone.released && zone.dead())) return true;
  }
  return false;
}

}  // namespace isozone
