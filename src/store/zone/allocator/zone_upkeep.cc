#include "store/zone/allocator/zone_upkeep.h"

#include <algorithm>
#include <array>
#include <utility>

namespace isozone {
// --- Resets ---

std::optional<ZoneCommands> ZoneUpkeep::ResetReleased() {
  const uint32_t most = CommandsToStart();
  if (ledger_.table.totals().released == 0 || most == 0) return std::nullopt;
  ZoneCommands commands;
  commands.zones = BeginResets(most, [this](ZoneId zone) { return ledger_.table.at(zone).released; });
  Confirm(commands);
  return commands;
}

std::optional<ZoneCommands> ZoneUpkeep::ResetDead(int64_t now_ns) {
  const uint32_t most = CommandsToStart();
  if (!ResetIsWanted() || !ledger_.durability.is_due(now_ns) || most == 0) return std::nullopt;
  ZoneCommands commands;
  // Released zones are not among these. They wait for nothing, least of all for durable metadata, which may wait for
  // them.
  commands.zones =
      BeginResets(most, [this](ZoneId zone) { return !ledger_.table.at(zone).released && IsToBeReset(zone); });
  commands.after_durable = true;
  if (commands.zones.empty()) return std::nullopt;
  return commands;
}

template <typename Wanted>
std::vector<ZoneId> ZoneUpkeep::BeginResets(uint32_t most, Wanted wanted) {
  std::vector<ZoneId> zones;
  const ZoneSet& dead = ledger_.table.dead();
  for (auto zone = dead.First(); zone && zones.size() < most; zone = dead.FirstFrom(ZoneId(zone->value() + 1))) {
    if (wanted(*zone)) zones.push_back(*zone);
  }
  for (const ZoneId zone : zones) ledger_.table.Edit(zone)->BeginReset();
  return zones;
}

uint32_t ZoneUpkeep::CommandsToStart() const {
  // Only what is at the device counts. Zones that wait for durable metadata must not hold up a zone that only has to be
  // reset, since that metadata may wait for this zone.
  const uint32_t in_flight = ledger_.table.totals().at_device;
  return in_flight > kMostResets / 2 ? 0 : kMostResets - in_flight;
}

bool ZoneUpkeep::ResetIsWanted() const {
  const ZoneTotals& totals = ledger_.table.totals();
  if (ledger_.durability.for_good() || ledger_.table.dead().empty()) return false;
  if (totals.dead_asked > 0) return true;
  return ledger_.reset_at_once && (ledger_.table.dead().size() > totals.dead_idle || !KeepsDeadIdle());
}

bool ZoneUpkeep::IsToBeReset(ZoneId zone) const {
  const ZoneRecord& record = ledger_.table.at(zone);
  return record.reset_asked || (ledger_.reset_at_once && (!(record.dead() && record.reusable()) || !KeepsDeadIdle()));
}

bool ZoneUpkeep::KeepsDeadIdle() const {
  return reuses_dead_ && !ledger_.stopping && ledger_.SpareZones() > 0 && ledger_.HasSpareTokens(ledger_.active);
}

void ZoneUpkeep::AskForDead() {
  const ZoneSet& dead = ledger_.table.dead();
  for (auto zone = dead.First(); zone; zone = dead.FirstFrom(ZoneId(zone->value() + 1))) {
    if (!ledger_.table.at(*zone).reset_asked) ledger_.table.Edit(*zone)->reset_asked = true;
  }
}

void ZoneUpkeep::AskForDeadActive() {
  for (const auto& [zone, holding] : ledger_.holdings) {
    if (holding.active && ledger_.table.at(zone).dead()) ledger_.table.Edit(zone)->reset_asked = true;
  }
}

uint32_t ZoneUpkeep::TokensToCome() const {
  return static_cast<uint32_t>(std::ranges::count_if(ledger_.holdings, [this](const auto& entry) {
    const ZoneRecord& zone = ledger_.table.at(entry.first);
    const bool goes = zone.phase == ZonePhase::kResetting || (zone.dead() && IsToBeReset(entry.first));
    return entry.second.active.has_value() && goes;
  }));
}

// --- Finishes ---

std::vector<ZoneCommands> ZoneUpkeep::Finish(Finishes which) {
  ZoneCommands data = {.op = DeviceOp::kFinish};
  ZoneCommands logs = {.op = DeviceOp::kFinish, .after_durable = true};
  for (;;) {
    auto zone = NextFailedFinish(which);
    if (!zone) zone = NextFinish(which);
    if (!zone) break;
    (ledger_.table.at(*zone).use == ZoneUse::kLog ? logs : data).zones.push_back(*zone);
    ledger_.table.Edit(*zone)->BeginFinish();
  }
  unconfirmed_finishes_ += static_cast<uint32_t>(logs.zones.size());
  Confirm(data);
  std::vector<ZoneCommands> all;
  for (ZoneCommands* commands : {&data, &logs}) {
    if (!commands->zones.empty()) all.push_back(std::move(*commands));
  }
  return all;
}

// Returns how many tokens the class should be able to take now.
uint32_t ZoneUpkeep::TokensWanted(BudgetClass c, Wishes wishes) const {
  const uint32_t waiting = ledger_.waiting_for_token[static_cast<size_t>(c)];
  const bool wished = c == BudgetClass::kData && ledger_.data_token_wanted && wishes == Wishes::kCount;
  return wished ? std::max(1U, waiting) : waiting;
}

bool ZoneUpkeep::IsShort(BudgetClass c) const { return ledger_.active.Available(c) < TokensWanted(c, Wishes::kCount); }

uint32_t ZoneUpkeep::FinishesWanted(Finishes which, Wishes wishes) const {
  const ActiveBudget& active = ledger_.active;
  if (which == Finishes::kForMetadata) {
    return Shortage(TokensWanted(BudgetClass::kMetadata, wishes), active.Available(BudgetClass::kMetadata));
  }
  uint32_t wanted = 0;
  for (const BudgetClass c : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
    wanted += Shortage(TokensWanted(c, wishes), active.Available(c));
  }
  // A reset is better than a finish where nothing lives in a zone. But metadata must not wait for it where its reserve
  // is short.
  if (wanted > 0 && ledger_.durability.error.ok()) wanted = Shortage(wanted, TokensToCome());
  return std::max(wanted, active.Overcommitted());
}

uint32_t ZoneUpkeep::FinishesUnderWay(Finishes which) const {
  return ledger_.table.totals().finishing - (which == Finishes::kForMetadata ? unconfirmed_finishes_ : 0);
}

bool ZoneUpkeep::OnlyDataWaits() const {
  for (const BudgetClass c : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc}) {
    if (ledger_.waiting_for_token[static_cast<size_t>(c)] > 0) return false;
  }
  return ledger_.active.Overcommitted() == 0;
}

bool ZoneUpkeep::LosesTooMuch(ZoneId zone, Finishes which) const {
  const ZoneRecord& record = ledger_.table.at(zone);
  if (100 * record.room() <= most_lost_percent_ * record.capacity) return false;
  const bool only_wished = FinishesWanted(which, Wishes::kIgnore) <= FinishesUnderWay(which);
  const bool in_background = which == Finishes::kAll || which == Finishes::kData;
  return only_wished || (in_background && record.use == ZoneUse::kData && OnlyDataWaits());
}

std::optional<ZoneId> ZoneUpkeep::NextFinish(Finishes which) const {
  if (FinishesWanted(which, Wishes::kCount) <= FinishesUnderWay(which)) return std::nullopt;
  if (which == Finishes::kForMetadata || ledger_.active.Overcommitted() > 0) {
    if (const auto dead = DeadActive()) return dead;
  }
  if (IsShort(BudgetClass::kData) || ledger_.active.Borrows(BudgetClass::kData)) {
    if (const auto sealed = SealedActive()) return sealed;
  }
  std::optional<ZoneId> fullest;
  for (const ZoneUse use : {ZoneUse::kData, ZoneUse::kLog}) {
    const BudgetClass c = BudgetClassOf(use);
    if (use == ZoneUse::kLog && which != Finishes::kAll) continue;
    if (!IsShort(c) && !ledger_.active.Borrows(c)) continue;
    const auto zone = ledger_.table.FullestIdle(use, ledger_.CollectorsZone());
    if (zone && (!fullest || ledger_.table.at(*zone).room() < ledger_.table.at(*fullest).room())) fullest = zone;
  }
  return fullest && LosesTooMuch(*fullest, which) ? std::nullopt : fullest;
}

std::optional<ZoneId> ZoneUpkeep::NextFailedFinish(Finishes which) const {
  for (const auto& [id, holding] : ledger_.holdings) {
    if (!holding.failed_finishes || *holding.failed_finishes >= kFinishTries) continue;
    const ZoneRecord& zone = ledger_.table.at(id);
    if (zone.phase != ZonePhase::kFailed || zone.dead()) continue;
    if (zone.use != ZoneUse::kLog || which == Finishes::kAll) return id;
  }
  return std::nullopt;
}

std::optional<ZoneId> ZoneUpkeep::DeadActive() const {
  for (const auto& [id, holding] : ledger_.holdings) {
    const ZoneRecord& zone = ledger_.table.at(id);
    if (holding.active && zone.use == ZoneUse::kData && zone.dead() && zone.reusable()) return id;
  }
  return std::nullopt;
}

std::optional<ZoneId> ZoneUpkeep::SealedActive() const {
  for (const auto& [id, holding] : ledger_.holdings) {
    const ZoneRecord& zone = ledger_.table.at(id);
    if (holding.active && zone.sealed && zone.live > 0 && zone.reusable() && id != ledger_.CollectorsZone()) return id;
  }
  return std::nullopt;
}

bool ZoneUpkeep::FinishIsComing(Finishes which) const {
  return ledger_.table.totals().finishing > 0 || NextFailedFinish(which) || NextFinish(which);
}

bool ZoneUpkeep::WaitsForDurability() const {
  if (ledger_.durability.for_good()) return false;
  return ResetIsWanted() || NextFailedFinish(Finishes::kAll) || NextFinish(Finishes::kAll);
}

bool ZoneUpkeep::IsDue(int64_t now_ns) const {
  const ZoneTotals& totals = ledger_.table.totals();
  const bool durable_is_due = ledger_.durability.is_due(now_ns);
  const Finishes which = durable_is_due ? Finishes::kAll : Finishes::kData;
  return (durable_is_due && ResetIsWanted()) || totals.released > 0 || totals.resetting > 0 || totals.finishing > 0 ||
         NextFailedFinish(which) || NextFinish(which);
}

// --- Answers of the executor ---

void ZoneUpkeep::Confirm(const ZoneCommands& commands) {
  if (commands.after_durable && commands.op == DeviceOp::kFinish) {
    unconfirmed_finishes_ -= static_cast<uint32_t>(commands.zones.size());
  }
  for (const ZoneId zone : commands.zones) ledger_.table.Edit(zone)->Submit();
}

void ZoneUpkeep::Cancel(const ZoneCommands& commands) {
  if (commands.op == DeviceOp::kFinish) unconfirmed_finishes_ -= static_cast<uint32_t>(commands.zones.size());
  for (const ZoneId zone : commands.zones) {
    const auto holding = ledger_.holdings.find(zone);
    const bool had_failed = holding != ledger_.holdings.end() && holding->second.failed_finishes;
    if (commands.op == DeviceOp::kFinish && had_failed) {
      ledger_.table.Edit(zone)->Fail(ledger_.table.at(zone).write_pointer);
    } else {
      ledger_.table.Edit(zone)->Cancel();
    }
  }
}

void ZoneUpkeep::NotePinned(std::span<const ZoneId> asked, std::span<const ZoneId> pinned, int64_t now_ns) {
  for (const ZoneId zone : asked) {
    ZoneTable::Change change = ledger_.table.Edit(zone);
    const bool resetting = change->phase == ZonePhase::kResetting;
    if (!resetting && !change->pinned) continue;  // it was leased meanwhile
    change->pinned = std::ranges::binary_search(pinned, zone);
    if (resetting && change->pinned) change->Cancel();
  }
  ledger_.readers_asked_at_ns = now_ns + kReadersPauseNs;
  ledger_.readers_in_the_way = false;
}

void ZoneUpkeep::NoteReset(ZoneId zone) {
  const ZoneRecord& record = ledger_.table.at(zone);
  ++ledger_.stats.resets;
  ledger_.stats.reset_bytes += record.finished_at.value_or(record.write_pointer);
  ledger_.table.Edit(zone)->EndReset();
  ledger_.DropToken(zone);
}

void ZoneUpkeep::NoteFinish(ZoneId zone) {
  ledger_.table.Edit(zone)->EndFinish();
  ledger_.DropToken(zone);
  ++ledger_.stats.finishes;
}

void ZoneUpkeep::NoteFailure(ZoneId zone, DeviceOp op, const std::optional<ZoneDescriptor>& found) {
  if (op == DeviceOp::kWrite && ledger_.table.at(zone).phase == ZonePhase::kLeased) ledger_.EraseLease(zone);
  LeaveBroken(zone, found);
  const auto holding = ledger_.holdings.find(zone);
  if (holding != ledger_.holdings.end()) {
    std::optional<uint32_t>& failures = holding->second.failed_finishes;
    if (op == DeviceOp::kFinish) failures = failures.value_or(0) + 1;
    // The end of a log or of a journal is not in the metadata yet, and a finish would hide it.
    if (op == DeviceOp::kWrite && ledger_.table.at(zone).use == ZoneUse::kData) failures = failures.value_or(0);
  }
  if (op != DeviceOp::kReset) return;
  ++ledger_.stats.failed_resets;
  // A zone that cannot be reset is not tried again.
  if (ledger_.table.at(zone).phase == ZonePhase::kFailed) ledger_.table.Edit(zone)->Retire(/*offline=*/false);
}

void ZoneUpkeep::LeaveBroken(ZoneId zone, const std::optional<ZoneDescriptor>& found) {
  if (!found) return ledger_.table.Edit(zone)->Fail(ledger_.table.at(zone).write_pointer);
  const bool offline = found->state == ZoneState::kOffline;
  if (offline || found->state == ZoneState::kReadOnly) {
    ledger_.table.Edit(zone)->Retire(offline);
  } else {
    ledger_.table.Edit(zone)->Fail(found->write_pointer);
  }
  if (!IsActive(found->state)) ledger_.DropToken(zone);
}

}  // namespace isozone
