#include "store/zone/allocator/zone_ledger.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

// A writer that has a zone already leaves others this many active zones.
constexpr uint32_t kSpareTokens = 2;

}  // namespace

ZoneLedger::ZoneLedger(std::span<const ZoneDescriptor> report, AllocatorOptions o)
    : options(std::move(o)),
      table(report, options.groups),
      active(options.geometry.max_active_zones),
      open(options.geometry.max_open_zones),
      loads(table.groups().count()),
      swing(options.geometry.zone_capacity * table.size()) {
  for (uint32_t i = 0; i < report.size(); ++i) {
    const ZoneId zone(i);
    if (IsHome(zone)) table.Edit(zone)->KeepForMetadata();
    if (!IsActive(report[i].state)) continue;
    holdings[zone].active.emplace(active.Adopt(IsHome(zone) ? BudgetClass::kMetadata : BudgetClass::kData));
  }
}

ZoneGrant ZoneLedger::Grant(const ZoneRequest& request, ZoneId zone) {
  CountMixing(request, table.at(zone));
  const bool urgent = request.urgent || request.use == ZoneUse::kLog;
  const ZoneGrant grant = Grant(zone, request.use, request.data_class(), CohortOf(request), BudgetClassOf(request),
                                urgent, WriterOf(request));
  if (request.makes_space()) {
    holdings.at(zone).lease->makes_space = true;
    ++space_makers;
    collecting += request.gc ? 1 : 0;
  }
  return grant;
}

void ZoneLedger::CountMixing(const ZoneRequest& request, const ZoneRecord& zone) {
  const bool goes_on = zone.phase == ZonePhase::kIdle && zone.use == ZoneUse::kData && zone.live > 0;
  if (!goes_on) return;
  const Cohort cohort = CohortOf(request);
  const bool together = !cohort.none() && zone.cohort.id == cohort.id;
  if (!together && zone.data != request.data_class()) ++stats.mixed_classes;
  if (zone.kept_from(cohort.id) || (cohort.own_zones && !together)) ++stats.mixed_cohorts;
}

ZoneGrant ZoneLedger::GrantMetadata(ZoneId zone) {
  return Grant(zone, ZoneUse::kMetadata, table.at(zone).data, {}, BudgetClass::kMetadata, /*urgent=*/true,
               ZoneWriter::kMetadata);
}

ZoneGrant ZoneLedger::Grant(ZoneId zone, ZoneUse use, DataClass data, Cohort cohort, BudgetClass c, bool urgent,
                            ZoneWriter writer) {
  ZoneHolding& holding = holdings[zone];
  assert(!holding.lease);
  if (!holding.active) {
    if (auto token = active.TryTake(c)) holding.active.emplace(std::move(*token));
  }
  assert(holding.active);
  {
    ZoneTable::Change change = table.Edit(zone);
    change->Lease(use, data, cohort);
    change->writer = writer;
  }
  LeaseRecord& lease = holding.lease.emplace();
  lease.state = std::make_shared<LeaseState>();
  ++next_lease;
  lease.budget_class = c;
  lease.urgent = urgent;
  ++LoadOf(zone, lease);
  ++leased;
  if (auto token = open.TryTake(c)) lease.open.emplace(std::move(*token));
  lease.last_used = ++use_count;
  return {zone, lease.state, table.at(zone).write_pointer, table.at(zone).capacity};
}

LeaseRecord* ZoneLedger::Find(const ZoneGrant& lease) {
  const auto holding = holdings.find(lease.zone);
  if (holding == holdings.end()) return nullptr;
  std::optional<LeaseRecord>& held = holding->second.lease;
  return held && held->state == lease.state ? &*held : nullptr;
}

void ZoneLedger::EndLease(ZoneId zone) {
  EraseLease(zone);
  table.Edit(zone)->EndLease();
  const ZonePhase phase = table.at(zone).phase;
  if (phase == ZonePhase::kEmpty || phase == ZonePhase::kFull) DropToken(zone);
}

void ZoneLedger::EraseLease(ZoneId zone) {
  const auto holding = holdings.find(zone);
  const LeaseRecord lease = std::move(*holding->second.lease);
  holding->second.lease.reset();
  lease.state->End();
  --LoadOf(zone, lease);
  --leased;
  space_makers -= lease.makes_space ? 1 : 0;
  const bool collectors = lease.budget_class == BudgetClass::kGc;
  collecting -= collectors ? 1 : 0;
  // Any writer may have what the collector leaves in a zone. The zone keeps the collector's share until the collector
  // needs another zone. If the zone counted as data at once, and as one active zone too many, a finish would throw away
  // what is left of it, and the next round would gain it back, for ever.
  if (collectors && active.Borrows(BudgetClass::kGc)) PassOnShare(zone);
  EraseIfUnused(holding);
}

void ZoneLedger::DropToken(ZoneId zone) {
  const auto holding = holdings.find(zone);
  if (holding == holdings.end()) return;
  holding->second.active.reset();
  holding->second.failed_finishes.reset();
  EraseIfUnused(holding);
}

bool ZoneLedger::HasToken(ZoneId zone) const {
  const auto holding = holdings.find(zone);
  return holding != holdings.end() && holding->second.active;
}

void ZoneLedger::PassOnShare(ZoneId zone) {
  std::optional<ActiveBudget::Token>& token = holdings.at(zone).active;
  if (!token) return;
  token.reset();
  token.emplace(active.Adopt(BudgetClass::kData));
}

std::optional<ZoneId> ZoneLedger::CollectorsZone() const {
  for (const auto& [zone, holding] : holdings) {
    const bool leased = holding.lease && holding.lease->budget_class == BudgetClass::kGc;
    if (holding.active && holding.active->budget_class() == BudgetClass::kGc && !leased) return zone;
  }
  return std::nullopt;
}

void ZoneLedger::Adopt(ZoneId zone, ZoneUse use) {
  if (use == ZoneUse::kMetadata && table.at(zone).phase == ZonePhase::kEmpty) return table.Edit(zone)->SetAside();
  table.Edit(zone)->use = use;
  const auto holding = holdings.find(zone);
  if (holding == holdings.end() || !holding->second.active) return;
  holding->second.active.reset();
  holding->second.active.emplace(active.Adopt(BudgetClassOf(use)));
}

uint32_t ZoneLedger::EmptyForMetadata() const {
  return Shortage(metadata_reserve, table.totals().kept + table.totals().held_elsewhere);
}

uint32_t ZoneLedger::EmptyKept(BudgetClass c) const { return EmptyKeptFrom(c, EmptyForMetadata()); }

uint64_t ZoneLedger::SpareZones() const {
  const uint64_t empty = table.empty().size();
  return empty - std::min(empty, uint64_t{EmptyKept(BudgetClass::kData)} + leased);
}

uint64_t ZoneLedger::FreeSoon() const {
  const ZoneTotals& totals = table.totals();
  return totals.free + totals.dead_in_idle + totals.resetting * options.geometry.zone_capacity;
}

uint64_t ZoneLedger::ReservedBytes() const {
  return std::min<uint64_t>(table.empty().size(), EmptyKept(BudgetClass::kData)) * options.geometry.zone_capacity;
}

uint64_t ZoneLedger::Free() const { return table.totals().free + table.totals().dead_in_idle - ReservedBytes(); }

uint64_t ZoneLedger::FreeForData() const { return Free() - std::min(Free(), table.totals().free_in_logs); }

bool ZoneLedger::HasSpareTokens(const ActiveBudget& budget) const {
  return budget.Available(BudgetClass::kData) > kSpareTokens;
}

bool ZoneLedger::IsHome(ZoneId zone) const { return zone.value() < HomeZones(options.metadata_copies); }

uint32_t& ZoneLedger::LoadOf(ZoneId zone, const LeaseRecord& lease) {
  GroupLoad& load = loads[table.groups().of(zone)];
  return lease.urgent ? load.urgent : load.others;
}

void ZoneLedger::EraseIfUnused(std::map<ZoneId, ZoneHolding>::iterator holding) {
  if (!holding->second.active && !holding->second.lease) holdings.erase(holding);
}

}  // namespace isozone
