#include "store/zone/allocator/zone_collection.h"

#include <algorithm>

namespace isozone {
namespace {

// Free space in this many zones does not count where users are paced: it is left to what makes space.
constexpr uint64_t kZonesForMakers = 3;

bool IsCollectable(const ZoneRecord& zone, bool dead_too) {
  if (zone.dead()) return dead_too && !zone.released;
  const bool at_rest =
      zone.phase == ZonePhase::kIdle || zone.phase == ZonePhase::kFull || zone.phase == ZonePhase::kFailed;
  const bool holds_data = zone.use == ZoneUse::kData || zone.has_data;
  return at_rest && holds_data && !zone.victim && zone.live > 0 && zone.live < zone.write_pointer;
}

}  // namespace

GcSpace ZoneCollection::Space() const {
  const ZoneTable& table = ledger_.table;
  const ZoneTotals& totals = table.totals();
  const uint64_t capacity = ledger_.options.geometry.zone_capacity;
  const uint32_t kept = ledger_.EmptyKept(BudgetClass::kData);
  const uint32_t empty = table.empty().size();
  GcSpace space;
  space.empty_zones = empty - std::min(empty, kept);
  const auto metadata = static_cast<uint32_t>(totals.metadata / capacity);
  space.zones = table.size() - std::min(table.size(), metadata + totals.unusable);
  space.capacity = space.zones * capacity;
  const uint32_t coming = empty + totals.resetting;
  space.free = ledger_.FreeSoon() - std::min(coming, kept) * capacity;
  space.swing = ledger_.swing.bytes();
  space.leased = ledger_.leased;
  space.wanted = ledger_.rounds.wanted();
  space.paced = CollectorIsAwaited();
  return space;
}

std::vector<GcCandidate> ZoneCollection::Candidates() const {
  std::vector<GcCandidate> candidates;
  candidates.reserve(ledger_.table.size());
  for (uint32_t i = 0; i < ledger_.table.size(); ++i) {
    if (MayCollect(ZoneId(i))) candidates.push_back(AsCandidate(ZoneId(i)));
  }
  return candidates;
}

std::optional<GcCandidate> ZoneCollection::Begin(ZoneId zone) {
  if (!MayCollect(zone)) return std::nullopt;
  ledger_.table.Edit(zone)->victim = true;
  return AsCandidate(zone);
}

void ZoneCollection::End(ZoneId zone) {
  ledger_.table.Edit(zone)->victim = false;
  if (ledger_.table.at(zone).dead()) ledger_.table.Edit(zone)->reset_asked = true;
}

uint64_t ZoneCollection::TakeUnlogged(uint64_t flushed, uint64_t logged) {
  pace_.NoteLogged(logged);
  return pace_.TakeUnlogged(flushed);
}

// A dead zone that is already to be reset would give nothing more if it were collected.
bool ZoneCollection::MayCollect(ZoneId zone) const {
  const ZoneRecord& record = ledger_.table.at(zone);
  return IsCollectable(record, !ledger_.reset_at_once) && !(record.dead() && record.reset_asked);
}

GcCandidate ZoneCollection::AsCandidate(ZoneId id) const {
  const ZoneRecord& zone = ledger_.table.at(id);
  GcCandidate c;
  c.zone = id;
  c.valid = zone.live;
  c.written = zone.write_pointer;
  c.capacity = zone.capacity;
  c.age = ledger_.bytes_written - zone.written_at;
  c.data = zone.data;
  c.group = ledger_.table.groups().of(id);
  c.full = zone.phase != ZonePhase::kIdle;
  return c;
}

double ZoneCollection::Price() const {
  if (!throttle_) return 0;
  GcSpace space = Space();
  const double below = throttle_(space);
  space.free -= std::min(space.free, kZonesForMakers * ledger_.options.geometry.zone_capacity);
  return WritePace::PriceOf(space.free_percent(), below);
}

}  // namespace isozone
