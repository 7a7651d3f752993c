#include "store/zone/allocator/zone_allocator.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace isozone {

using Action = ZoneAllocator::Answer::Action;

namespace {

// Returns how many bytes have died in the zones that users write now. The collector can take them once nobody writes
// there. Where there is no space, users soon have no zone to write, so that waiting for them ends. The collector's own
// writes are left out: it would begin them anew for whoever waits for them.
uint64_t KeptByWriters(const ZoneLedger& ledger) {
  uint64_t bytes = 0;
  for (const auto& [zone, holding] : ledger.holdings) {
    const bool of_user = holding.is_written() && holding.lease->budget_class == BudgetClass::kData;
    if (of_user) bytes += ledger.table.at(zone).dead_bytes();
  }
  return bytes;
}

}  // namespace

// --- Inquiry ---

ZoneAllocator::Inquiry::Inquiry(ZoneAllocator& allocator, const ZoneRequest& request)
    : allocator_(allocator), purpose_(Purpose::kFiles), class_(BudgetClassOf(request)), request_(request) {
  assert(request.use == ZoneUse::kData || request.use == ZoneUse::kLog);
  allocator_.ledger_.space_makers += request_.makes_space() ? 1 : 0;
  allocator_.ledger_.collecting += request_.gc ? 1 : 0;
}

ZoneAllocator::Inquiry::Inquiry(ZoneAllocator& allocator, Purpose purpose, std::span<const ZoneId> apart_from)
    : allocator_(allocator), purpose_(purpose), class_(BudgetClass::kMetadata), apart_from_(apart_from) {
  assert(purpose == Purpose::kBegin || purpose == Purpose::kSetAside);
}

ZoneAllocator::Inquiry::Inquiry(ZoneAllocator& allocator, ZoneId zone)
    : allocator_(allocator), purpose_(Purpose::kReopen), class_(BudgetClass::kMetadata), zone_(zone) {}

ZoneAllocator::Inquiry::Inquiry(ZoneAllocator& allocator, Room room)
    : allocator_(allocator), purpose_(Purpose::kRoom), class_(BudgetClass::kData), room_(room) {}

ZoneAllocator::Inquiry::~Inquiry() {
  EndWait();
  allocator_.ledger_.space_makers -= request_.makes_space() ? 1 : 0;
  allocator_.ledger_.collecting -= request_.gc ? 1 : 0;
}

void ZoneAllocator::Inquiry::WaitForToken() {
  waits_for_token_ = true;
  ++allocator_.ledger_.waiting_for_token[static_cast<size_t>(class_)];
}

void ZoneAllocator::Inquiry::WaitForCollector() {
  waits_for_collector_ = true;
  allocator_.ledger_.rounds.BeginWait();
}

void ZoneAllocator::Inquiry::EndWait() {
  if (std::exchange(waits_for_token_, false)) --allocator_.ledger_.waiting_for_token[static_cast<size_t>(class_)];
  if (std::exchange(waits_for_collector_, false)) allocator_.ledger_.rounds.EndWait();
}

// --- Asking ---

ZoneAllocator::ZoneAllocator(std::span<const ZoneDescriptor> report, AllocatorOptions options,
                             std::unique_ptr<PlacementPolicy> policy)
    : ledger_(report, std::move(options)),
      policy_(std::move(policy)),
      choice_(ledger_, *policy_),
      upkeep_(ledger_, *policy_),
      collection_(ledger_) {
  ledger_.heeds_cohorts = policy_->heeds_cohorts();
}

ZoneAllocator::Answer ZoneAllocator::Ask(Inquiry& inquiry, int64_t now_ns) {
  inquiry.EndWait();
  const Attempt attempt = Try(inquiry);
  if (attempt.grant) return {.action = Action::kGranted, .grant = *attempt.grant};
  if (inquiry.request_.confined) return {.action = Action::kNothing, .lack = attempt.lack};
  if (attempt.lack == Lack::kActiveZone) inquiry.WaitForToken();
  Answer answer = Remedy(inquiry, attempt.lack, now_ns);
  answer.lack = attempt.lack;
  // A round that begins while it does something itself does not know of it.
  if (answer.action == Action::kExecute || answer.action == Action::kRevoked) inquiry.no_space_ = {};
  return answer;
}

std::optional<ZoneGrant> ZoneAllocator::Widen(const ZoneRequest& request) {
  const auto zone = choice_.Wider(request);
  if (!zone) return std::nullopt;
  return ledger_.Grant(request, *zone);
}

void ZoneAllocator::Seal(uint64_t cohort) {
  for (const auto& [zone, holding] : ledger_.holdings) {
    const ZoneRecord& record = ledger_.table.at(zone);
    if (record.cohort.id == cohort && !record.sealed) ledger_.table.Edit(zone)->sealed = true;
  }
}

ZoneAllocator::Attempt ZoneAllocator::Try(const Inquiry& inquiry) {
  using Purpose = Inquiry::Purpose;
  switch (inquiry.purpose_) {
    case Purpose::kFiles:
      return TryFiles(inquiry.request_);
    case Purpose::kBegin:
      return TryMetadata(inquiry.apart_from_);
    case Purpose::kSetAside:
      return TrySetAside(inquiry.apart_from_);
    case Purpose::kReopen:
      return TryReopen(inquiry.zone_);
    case Purpose::kRoom:
      break;
  }
  return TryRoom(inquiry.room_);
}

ZoneAllocator::Attempt ZoneAllocator::TryFiles(const ZoneRequest& request) {
  if (request.confined) {
    const auto zone = choice_.Confined(request);
    return zone ? Attempt{ledger_.Grant(request, *zone)} : Attempt{};
  }
  const BudgetClass c = BudgetClassOf(request);
  if (ledger_.open.Available(c) == 0) return {{}, Lack::kOpenZone};
  const PlacementQuery query = choice_.QueryFor(request);
  if (c == BudgetClass::kData && query.token_available) ledger_.data_token_wanted = false;
  Placement placement = choice_.Place(query);
  if (request.gc) placement = PlaceForCollector(request, query, placement);
  using Place = Placement::Action;
  if (placement.action == Place::kNeedSpace) return {{}, Lack::kSpace};
  if (!placement.zone) return {{}, Lack::kActiveZone};
  if (placement.action == Place::kNeedToken) {
    ledger_.data_token_wanted = true;
    upkeep_.AskForDeadActive();
  }
  // The cohort can begin a new zone as soon as a sealed one is finished.
  if (query.cohort.own_zones && !query.token_available && upkeep_.SealedActive()) ledger_.data_token_wanted = true;
  return {ledger_.Grant(request, *placement.zone)};
}

// If the collector needs an active zone, it leaves its own zone for that. That zone may be finished then, and what is
// left of it is lost until it is collected itself. Where no zones are empty but reserved ones, each round would
// thus lose what the round before has gained. There, and where there is no zone for one class alone, it mixes classes.
Placement ZoneAllocator::PlaceForCollector(const ZoneRequest& request, PlacementQuery query, Placement placement) {
  using Place = Placement::Action;
  const bool tight = !ledger_.HasEmpty(BudgetClass::kData);
  if (placement.action == Place::kNeedSpace || (placement.action == Place::kNeedToken && tight)) {
    if (const auto any = ClosestDeathIdle(ledger_.table, query)) return {Place::kUseIdle, *any};
  }
  if (placement.action != Place::kNeedToken) return placement;
  const auto left = ledger_.CollectorsZone();
  if (!left) return placement;
  ledger_.PassOnShare(*left);
  query.token_available = ledger_.active.Available(BudgetClassOf(request)) > 0;
  return choice_.Place(query);
}

ZoneAllocator::Attempt ZoneAllocator::TryMetadata(std::span<const ZoneId> apart_from) {
  if (ledger_.open.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kOpenZone};
  if (ledger_.active.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kActiveZone};
  const auto zone = choice_.ToBegin(apart_from);
  return zone ? Attempt{ledger_.GrantMetadata(*zone)} : Attempt{};
}

// A zone that is only reserved takes no share of the active zones yet.
ZoneAllocator::Attempt ZoneAllocator::TrySetAside(std::span<const ZoneId> apart_from) {
  const auto zone = choice_.ToGoOn(apart_from);
  if (!zone) return {};
  ledger_.table.Edit(*zone)->SetAside();
  return {ZoneGrant{*zone, 0, 0, ledger_.table.at(*zone).capacity}};
}

ZoneAllocator::Attempt ZoneAllocator::TryReopen(ZoneId zone) {
  if (ledger_.open.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kOpenZone};
  const bool needs_token = !ledger_.HasToken(zone);
  if (needs_token && ledger_.active.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kActiveZone};
  return {ledger_.GrantMetadata(zone)};
}

ZoneAllocator::Attempt ZoneAllocator::TryRoom(Inquiry::Room room) const {
  return ledger_.FreeForData() >= room.bytes ? Attempt{ZoneGrant()} : Attempt{};
}

// --- Remedies ---

ZoneAllocator::Answer ZoneAllocator::Remedy(Inquiry& inquiry, Lack lack, int64_t now_ns) {
  if (inquiry.purpose_ == Inquiry::Purpose::kRoom) return RemedyForRoom(inquiry, now_ns);
  const BudgetClass c = inquiry.class_;
  if (auto answer = TakeOverLog(inquiry, lack)) return *answer;
  if (auto answer = Commands(c)) return *answer;
  AskForResets(lack);
  if (auto answer = AwaitUpkeep(inquiry, lack)) return *answer;
  if (c == BudgetClass::kGc && lack == Lack::kSpace) {
    if (auto answer = Checkpoint(inquiry)) return *answer;
  }
  if (auto answer = RevokeIdleLease(c, lack)) return *answer;
  if (auto answer = AwaitOthers(inquiry, lack, now_ns)) return *answer;
  if (auto answer = AwaitCollector(inquiry, lack)) return *answer;
  if (lack == Lack::kSpace && IsOfFiles(c)) {
    if (auto answer = Checkpoint(inquiry)) return *answer;
  }
  if (auto answer = AwaitReaders(inquiry, lack, now_ns)) return *answer;
  if (auto answer = AwaitWriter(c, lack)) {
    if (KeptByWriters(ledger_) > 0) inquiry.no_space_ = {};
    return *answer;
  }
  return {.action = Action::kNothing, .lack = lack};
}

ZoneAllocator::Answer ZoneAllocator::RemedyForRoom(Inquiry& inquiry, int64_t now_ns) {
  const ZoneTotals& totals = ledger_.table.totals();
  if (inquiry.room_.bytes > totals.capacity - std::min(totals.capacity, totals.live)) return {};
  if (auto resets = upkeep_.ResetReleased()) return {.action = Action::kExecute, .commands = {std::move(*resets)}};
  AskForResets(Lack::kSpace);
  if (auto answer = AwaitUpkeep(inquiry, Lack::kSpace)) return *answer;
  const auto has_dead = [this](ZoneId zone, const ZoneHolding&) { return ledger_.table.at(zone).dead_bytes() > 0; };
  // The collector takes no leased one.
  if (RevokeLongestIdle(BudgetClass::kData, has_dead)) return {.action = Action::kRevoked};
  if (auto answer = AwaitCollector(inquiry, Lack::kSpace)) return *answer;
  if (auto answer = Checkpoint(inquiry)) return *answer;
  if (auto answer = AwaitReaders(inquiry, Lack::kSpace, now_ns)) return *answer;
  const uint64_t to_come = KeptByWriters(ledger_);
  if (to_come == 0 || ledger_.FreeForData() + to_come < inquiry.room_.bytes) return {};
  inquiry.no_space_ = {};
  return {.action = Action::kWait};
}

// A log that needs an active zone takes over that of a log of its lifetime which is between writes, so that no zone is
// finished, and its rest lost. Databases keep a log open for a while after its last write, and begin the next one. If
// the other log goes on writing all the same, both need a zone, and the one that was taken over is left to its holder:
// otherwise they would take it from each other at each write.
std::optional<ZoneAllocator::Answer> ZoneAllocator::TakeOverLog(const Inquiry& inquiry, Lack lack) {
  const bool lacks_active_zone = lack != Lack::kSpace && ledger_.active.Available(BudgetClass::kLog) == 0;
  const bool loses_anything = policy_->most_lost_percent() == 100;
  if (inquiry.class_ != BudgetClass::kLog || !lacks_active_zone || loses_anything) return std::nullopt;
  const ZoneRequest& request = inquiry.request_;
  const auto zone = RevokeLongestIdle(BudgetClass::kLog, [&](ZoneId id, const ZoneHolding& holding) {
    const ZoneRecord& record = ledger_.table.at(id);
    const bool fits = record.write_pointer > 0 && record.room() >= request.min_room;
    return fits && record.data.lifetime == request.lifetime && !holding.taken_over;
  });
  if (!zone) return std::nullopt;
  ledger_.holdings.at(*zone).taken_over = true;
  return Answer{.action = Action::kRevoked};
}

std::optional<ZoneAllocator::Answer> ZoneAllocator::Commands(BudgetClass c) {
  Answer answer = {.action = Action::kExecute};
  if (auto resets = upkeep_.ResetReleased()) {
    answer.commands.push_back(std::move(*resets));
    return answer;
  }
  answer.commands = upkeep_.Finish(c == BudgetClass::kMetadata ? Finishes::kForMetadata : Finishes::kForWaiter);
  if (answer.commands.empty()) return std::nullopt;
  return answer;
}

// Asks for resets of dead zones that give back what is missing. These include dead zones that would otherwise wait for
// the collector, now or after a change of the scheme.
void ZoneAllocator::AskForResets(Lack lack) {
  if (lack == Lack::kSpace) upkeep_.AskForDead();
  if (lack == Lack::kActiveZone) upkeep_.AskForDeadActive();
}

std::optional<ZoneAllocator::Answer> ZoneAllocator::AwaitUpkeep(Inquiry& inquiry, Lack lack) {
  if (!HelpIsComing(inquiry, lack)) return std::nullopt;
  inquiry.no_space_ = {};  // rounds under way meanwhile do not know of it
  return Answer{.action = Action::kWait};
}

// Returns whether waiting makes sense: work that may end the lack is under way, or is about to be taken up.
bool ZoneAllocator::HelpIsComing(Inquiry& inquiry, Lack lack) const {
  if (lack == Lack::kOpenZone) return false;
  const bool metadata = inquiry.class_ == BudgetClass::kMetadata;
  // Commands at the device end in any case.
  if (metadata && ledger_.table.totals().at_device > 0) return true;
  // The thread that makes the metadata durable may wait for this very inquiry.
  if (metadata || !ledger_.started || ledger_.durability.for_good()) return false;
  if (lack == Lack::kSpace) return ResetIsComing(inquiry);
  if (upkeep_.FinishIsComing(Finishes::kData)) return true;
  if (upkeep_.FinishIsComing(Finishes::kAll) && DurableMaySucceed(inquiry)) return true;
  return ResetIsComing(inquiry) && upkeep_.TokensToCome() > 0;
}

// Returns whether a zone is being reset, or is to be reset.
bool ZoneAllocator::ResetIsComing(Inquiry& inquiry) const {
  return ledger_.table.totals().resetting > 0 || (upkeep_.ResetIsWanted() && DurableMaySucceed(inquiry));
}

// An inquiry waits for durable metadata only until making it durable has failed so many times.
bool ZoneAllocator::DurableMaySucceed(Inquiry& inquiry) const {
  const uint64_t failures = ledger_.durability.failures;
  if (!inquiry.durable_failures_before_) inquiry.durable_failures_before_ = failures;
  return failures - *inquiry.durable_failures_before_ < kDurableTries;
}

std::optional<ZoneAllocator::Answer> ZoneAllocator::Checkpoint(const Inquiry& inquiry) const {
  if (!ledger_.options.asks_for_checkpoints || !ledger_.started || inquiry.checkpoint_ended) return std::nullopt;
  return Answer{.action = Action::kCheckpoint};
}

// Takes a zone from a writer that is between writes, before anybody waits for one. What is gained is the room that is
// left in it, or its place among the open or active zones. Other classes can have that place only where it is borrowed.
// Zones of logs stay active for logs.
std::optional<ZoneAllocator::Answer> ZoneAllocator::RevokeIdleLease(BudgetClass c, Lack lack) {
  for (const BudgetClass victim : {BudgetClass::kData, BudgetClass::kLog}) {
    const bool lends_open = lack == Lack::kOpenZone && ledger_.open.Borrows(victim);
    const bool lends_active =
        lack == Lack::kActiveZone && victim == BudgetClass::kData && ledger_.active.Borrows(victim);
    if (victim != c && !lends_open && !lends_active) continue;
    const auto any = [](ZoneId, const ZoneHolding&) { return true; };
    if (RevokeLongestIdle(victim, any)) return Answer{.action = Action::kRevoked};
  }
  return std::nullopt;
}

template <typename Wanted>
std::optional<ZoneId> ZoneAllocator::RevokeLongestIdle(BudgetClass c, Wanted wanted) {
  for (;;) {
    std::optional<ZoneId> zone;
    const LeaseRecord* oldest = nullptr;
    for (const auto& [id, holding] : ledger_.holdings) {
      const auto& lease = holding.lease;
      if (!lease || lease->budget_class != c || lease->state->writing() || !lease->open) continue;
      if ((oldest != nullptr && lease->last_used >= oldest->last_used) || !wanted(id, holding)) continue;
      zone = id;
      oldest = &*lease;
    }
    if (!zone) return std::nullopt;
    if (!oldest->state->EndIfIdle()) continue;  // its holder was quicker
    ledger_.EndLease(*zone);
    ++ledger_.stats.revoked_leases;
    return zone;
  }
}

// The wait for other users of the device is bounded.
std::optional<ZoneAllocator::Answer> ZoneAllocator::AwaitOthers(Inquiry& inquiry, Lack lack, int64_t now_ns) const {
  if (lack != Lack::kActiveZone || ledger_.active.withheld() == 0 || !ledger_.started) return std::nullopt;
  if (!inquiry.others_deadline_ns_) inquiry.others_deadline_ns_ = now_ns + ledger_.options.patience_ns;
  if (now_ns >= *inquiry.others_deadline_ns_) return std::nullopt;
  return Answer{.action = Action::kWait, .until_ns = std::min(*inquiry.others_deadline_ns_, others_until_ns_)};
}

std::optional<ZoneAllocator::Answer> ZoneAllocator::AwaitCollector(Inquiry& inquiry, Lack lack) {
  const bool may_help = lack == Lack::kSpace && IsOfFiles(inquiry.class_) && ledger_.options.asks_for_space &&
                        !ledger_.durability.for_good() && ledger_.rounds.MayHelp(inquiry.no_space_);
  if (!may_help) return std::nullopt;
  if (!std::exchange(inquiry.space_wait_counted_, true)) ++ledger_.stats.space_waits;
  inquiry.WaitForCollector();
  return Answer{.action = Action::kCollector};
}

// The wait for readers is bounded, too: they may keep what they have for ever.
std::optional<ZoneAllocator::Answer> ZoneAllocator::AwaitReaders(Inquiry& inquiry, Lack lack, int64_t now_ns) {
  if (lack != Lack::kSpace || ledger_.table.pinned().empty() || !ledger_.started) return std::nullopt;
  if (!inquiry.readers_deadline_ns_) inquiry.readers_deadline_ns_ = now_ns + kReadersNs;
  if (now_ns >= *inquiry.readers_deadline_ns_) return std::nullopt;
  ledger_.readers_in_the_way = true;
  return Answer{.action = Action::kWait, .until_ns = *inquiry.readers_deadline_ns_};
}

// A writer in the middle of a write will soon be between writes. Metadata and the collector take no room from others.
std::optional<ZoneAllocator::Answer> ZoneAllocator::AwaitWriter(BudgetClass c, Lack lack) const {
  const bool writing =
      std::ranges::any_of(ledger_.holdings, [](const auto& entry) { return entry.second.is_written(); });
  const bool frees_something = lack != Lack::kSpace || IsOfFiles(c);
  if (!writing || !frees_something) return std::nullopt;
  return Answer{.action = Action::kWait};
}

// --- Leases ---

void ZoneAllocator::EndWrite(const ZoneGrant& lease, uint64_t bytes, uint64_t live) {
  LeaseRecord* held = ledger_.Find(lease);
  assert(held != nullptr);
  held->state->EndWrite();
  held->last_used = ++ledger_.use_count;
  NoteWritten(lease.zone, bytes, live);
  if (held->makes_space) collection_.Earn(bytes);
  if (ledger_.table.at(lease.zone).room() > 0) return;
  // The zone is no longer active nor open for the device.
  held->open.reset();
  ledger_.DropToken(lease.zone);
}

void ZoneAllocator::NoteWritten(ZoneId zone, uint64_t bytes, uint64_t live) {
  ledger_.bytes_written += bytes;
  ledger_.swing.Note(ledger_.bytes_written, ledger_.FreeSoon());
  ZoneTable::Change change = ledger_.table.Edit(zone);
  change->Advance(bytes);
  change->AddLive(live);
  change->written_at = ledger_.bytes_written;
}

void ZoneAllocator::EndRefusedWrite(const ZoneGrant& lease, uint64_t bytes) {
  assert(ledger_.Find(lease) != nullptr && lease.state->writing());
  if (bytes > 0) NoteWritten(lease.zone, bytes, /*live=*/0);
  ledger_.EndLease(lease.zone);
}

void ZoneAllocator::Release(const ZoneGrant& lease) {
  if (ledger_.Find(lease) == nullptr) return;
  ledger_.EndLease(lease.zone);
  const auto holding = ledger_.holdings.find(lease.zone);
  if (holding != ledger_.holdings.end()) holding->second.taken_over = false;
}

// --- Metadata ---

void ZoneAllocator::ReleaseMetadata(ZoneId zone) { ledger_.table.Edit(zone)->Release(); }

bool ZoneAllocator::ReserveForMetadata(uint32_t zones, MetadataClaim claim) {
  const uint32_t before = std::exchange(ledger_.metadata_reserve, zones);
  const ZoneTotals& totals = ledger_.table.totals();
  // While readers in other processes pin zones, they may pin one whose reset is not submitted yet.
  const uint32_t resetting = ledger_.table.pinned().empty() ? totals.resetting : totals.being_reset;
  const uint32_t coming = resetting + totals.released;
  // The zones that are reserved for metadata alone are those that GC may not take.
  const uint32_t kept = ledger_.EmptyKept(claim == MetadataClaim::kNew ? BudgetClass::kData : BudgetClass::kGc);
  const bool fits = ledger_.table.empty().size() + coming >= kept;
  if (zones <= before || claim == MetadataClaim::kForced || fits) return true;
  ledger_.metadata_reserve = before;
  return false;
}

// --- Background ---

ZoneAllocator::Work ZoneAllocator::NextWork(int64_t now_ns) {
  if (std::exchange(refused_, false) && ledger_.options.geometry.max_active_zones > 0) return {.count_others = true};
  Work work;
  if (!ledger_.stopping && now_ns >= ledger_.readers_asked_at_ns) work.ask_readers = ledger_.table.pinned().All();
  if (!work.ask_readers.empty()) return work;
  if (auto resets = upkeep_.ResetReleased()) work.commands.push_back(std::move(*resets));
  if (!work.commands.empty()) return work;
  const bool durable_is_due = ledger_.durability.is_due(now_ns);
  if (!ledger_.stopping) work.commands = upkeep_.Finish(durable_is_due ? Finishes::kAll : Finishes::kData);
  if (!work.commands.empty()) return work;
  if (auto resets = upkeep_.ResetDead(now_ns)) work.commands.push_back(std::move(*resets));
  if (!work.commands.empty()) return work;
  work.is_over = ledger_.stopping && ledger_.table.totals().at_device == 0;
  if (!ledger_.durability.error.ok() && upkeep_.WaitsForDurability()) work.until_ns = ledger_.durability.next_try_ns;
  if (!ledger_.stopping && !ledger_.table.pinned().empty())
    work.until_ns = std::min(work.until_ns, ledger_.readers_asked_at_ns);
  if (ledger_.active.withheld() > 0) work.until_ns = std::min(work.until_ns, others_until_ns_);
  return work;
}

void ZoneAllocator::NoteDurability(const Status& status, int64_t now_ns) {
  ledger_.durability.error = status;
  if (status.ok()) return;
  ++ledger_.durability.failures;
  ledger_.durability.next_try_ns = now_ns + kDurablePauseNs;
}

void ZoneAllocator::NoteOthers(uint32_t active_zones, int64_t now_ns) {
  const uint32_t limit = ledger_.options.geometry.max_active_zones;
  ledger_.active.Withhold(limit - std::min(active_zones, limit));
  others_until_ns_ = now_ns + kOthersNs;
}

bool ZoneAllocator::ForgetOthers(int64_t now_ns) {
  if (ledger_.active.withheld() == 0 || now_ns < others_until_ns_) return false;
  ledger_.active.Withhold(0);
  return true;
}

}  // namespace isozone
