#include "store/zone/placement_policy.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "store/zone/group_choice.h"
#include "store/zone/isozone_placement.h"
#include "store/zone/published/level_placement.h"
#include "store/zone/published/lifetime_placement.h"
#include "store/zone/published/zenfs_placement.h"

namespace isozone {
namespace {

struct NamedPolicy {
  std::string_view name;
  std::unique_ptr<PlacementPolicy> (*make)();
};

constexpr std::array kPolicies = {
    NamedPolicy{IsozonePlacement::kName,
                []() -> std::unique_ptr<PlacementPolicy> { return std::make_unique<IsozonePlacement>(); }},
    NamedPolicy{LevelPlacement::kName,
                []() -> std::unique_ptr<PlacementPolicy> { return std::make_unique<LevelPlacement>(); }},
    NamedPolicy{LifetimePlacement::kName,
                []() -> std::unique_ptr<PlacementPolicy> { return std::make_unique<LifetimePlacement>(); }},
    NamedPolicy{ZenfsPlacement::kName,
                []() -> std::unique_ptr<PlacementPolicy> { return std::make_unique<ZenfsPlacement>(); }},
};

// An idle zone of this lifetime: of `heat` if there is one, otherwise of the coldest.
std::optional<ZoneId> IdleOfLifetime(const ZoneTable& table, Lifetime lifetime, ZoneHeat heat, uint64_t min_room) {
  if (auto zone = table.IdleWithRoom(ZoneUse::kData, lifetime, min_room, heat)) return zone;
  for (int colder = kZoneHeatCount - 1; colder >= 0; --colder) {
    if (auto zone = table.IdleWithRoom(ZoneUse::kData, lifetime, min_room, static_cast<ZoneHeat>(colder))) return zone;
  }
  return std::nullopt;
}

// The fullest idle zone of this class with room, but for those that are reserved for other cohorts.
std::optional<ZoneId> IdleNotKept(const ZoneTable& table, const PlacementQuery& query, Lifetime lifetime,
                                  ZoneHeat heat) {
  const ZoneTable::IdleByRoom& idle = table.Idle(ZoneUse::kData, lifetime, heat);
  for (auto it = idle.lower_bound({query.min_room, ZoneId(0)}); it != idle.end(); ++it) {
    if (!table.at(it->second).kept_from(query.cohort.id)) return it->second;
  }
  return std::nullopt;
}

// Calls `find` with lifetimes and heats, those that should be looked at first; what it finds first.
template <typename Find>
std::optional<ZoneId> ByClosestDeath(const PlacementQuery& query, Find find) {
  const auto of_lifetime = [&](int lifetime) -> std::optional<ZoneId> {
    if (auto zone = find(static_cast<Lifetime>(lifetime), query.heat)) return zone;
    for (int colder = kZoneHeatCount - 1; colder >= 0; --colder) {
      if (auto zone = find(static_cast<Lifetime>(lifetime), static_cast<ZoneHeat>(colder))) return zone;
    }
    return std::nullopt;
  };
  const int own = static_cast<int>(query.lifetime);
  for (int longer = own; longer < kLifetimeCount; ++longer) {
    if (auto zone = of_lifetime(longer)) return zone;
  }
  for (int shorter = own - 1; shorter >= 0; --shorter) {
    if (auto zone = of_lifetime(shorter)) return zone;
  }
  return std::nullopt;
}

std::optional<ZoneId> AnyIdleLog(const ZoneTable& table, uint64_t min_room) {
  for (int lifetime = 0; lifetime < kLifetimeCount; ++lifetime) {
    if (auto zone = table.IdleWithRoom(ZoneUse::kLog, static_cast<Lifetime>(lifetime), min_room)) return zone;
  }
  return std::nullopt;
}

// Chooses one more zone for a log that is written faster than its zones can be programmed.
Placement WidenLog(const ZoneTable& table, const PlacementQuery& query) {
  using Action = Placement::Action;
  const GroupChoice choice(table, query);
  if (const auto idle = choice.Idle()) return {Action::kUseIdle, idle->zone};
  const auto empty = query.can_open() ? choice.Empty() : std::nullopt;
  return empty ? Placement{Action::kOpenEmpty, empty->zone} : Placement{};
}

}  // namespace

Placement PlaceLog(const ZoneTable& table, const PlacementQuery& query) {
  using Action = Placement::Action;
  if (query.widen) return WidenLog(table, query);
  // Pack tight: logs of one lifetime die in the order in which they were written.
  if (auto zone = table.IdleWithRoom(ZoneUse::kLog, query.lifetime, query.min_room)) return {Action::kUseIdle, *zone};
  // Lifetimes are kept apart while that costs nothing.
  if (query.can_open()) return {Action::kOpenEmpty, GroupChoice(table, query).Empty()->zone};
  // Any zone of logs is better than waiting.
  if (auto zone = AnyIdleLog(table, query.min_room)) return {Action::kUseIdle, *zone};
  return {query.empty_available ? Action::kNeedToken : Action::kNeedSpace, {}};
}

std::optional<ZoneId> LongestLivedIdle(const ZoneTable& table, uint64_t min_room) {
  for (int lifetime = kLifetimeCount - 1; lifetime >= 0; --lifetime) {
    if (auto zone = IdleOfLifetime(table, static_cast<Lifetime>(lifetime), kNewDataHeat, min_room)) return zone;
  }
  return std::nullopt;
}

std::optional<ZoneId> ClosestDeathIdle(const ZoneTable& table, const PlacementQuery& query) {
  const auto not_kept = ByClosestDeath(
      query, [&](Lifetime lifetime, ZoneHeat heat) { return IdleNotKept(table, query, lifetime, heat); });
  if (not_kept) return not_kept;
  return ByClosestDeath(query, [&](Lifetime lifetime, ZoneHeat heat) {
    return table.IdleWithRoom(ZoneUse::kData, lifetime, query.min_room, heat);
  });
}

Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name) {
  std::string known;
  for (const NamedPolicy& policy : kPolicies) {
    if (policy.name == name) return policy.make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  }
  return Status::InvalidArgument(fmt::format("unknown placement policy \"{}\"; known: {}", name, known));
}

std::vector<std::string_view> PlacementPolicyNames() {
  std::vector<std::string_view> names;
  for (const NamedPolicy& policy : kPolicies) names.push_back(policy.name);
  return names;
}

}  // namespace isozone
