#include "fs/space/zone_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/units.h"
#include "fs/space/collector_rounds.h"
#include "fs/space/write_pace.h"
#include "fs/space/zone_reserves.h"
#include "io/patient_device.h"
#include "zone/active_budget.h"
#include "zone/placement_policy.h"
#include "zone/zone_table.h"

namespace isozone {
namespace {

// Resets in flight at most: others wait for the device behind them. More are started once half of them are done, so that
// one call of make_durable serves many zones.
constexpr size_t kMostResets = 32;
// How long after a passing error make_durable is called again, and how often somebody who waits for space looks on.
constexpr int64_t kDurablePauseNs = 100 * kMillisecondNs;
constexpr uint64_t kDurableTries = 3;
// What is free of these does not count where users are paced.
constexpr uint64_t kZonesForMakers = 3;
// How often a zone whose write failed is to be finished.
constexpr uint32_t kFinishTries = 3;
// How long active zones that others hold are left out of account after the device has refused one.
constexpr int64_t kOthersNs = kSecondNs;

// By how much `wanted` exceeds `have`.
constexpr uint32_t Shortage(uint32_t wanted, uint32_t have) { return wanted > have ? wanted - have : 0; }

// Whom a zone is leased to.
BudgetClass ClassOf(ZoneUse use) {
  if (use == ZoneUse::kLog) return BudgetClass::kLog;
  return use == ZoneUse::kMetadata ? BudgetClass::kMetadata : BudgetClass::kData;
}

BudgetClass ClassOf(const ZoneRequest& request) { return request.gc ? BudgetClass::kGc : ClassOf(request.use); }

// What it writes gives back more than it takes, in the end.
bool MakesSpace(const ZoneRequest& request) { return request.compaction || request.gc; }

bool IsOfFiles(BudgetClass c) { return c == BudgetClass::kData || c == BudgetClass::kLog; }

bool IsCollectable(const ZoneRecord& zone, bool dead_too) {
  if (zone.dead()) return dead_too && !zone.released;
  const bool at_rest =
      zone.phase == ZonePhase::kIdle || zone.phase == ZonePhase::kFull || zone.phase == ZonePhase::kFailed;
  return at_rest && zone.use == ZoneUse::kData && !zone.victim && zone.live > 0 && zone.live < zone.write_pointer;
}

bool IsUsable(const ZoneRecord& zone) { return zone.phase != ZonePhase::kRetired && zone.phase != ZonePhase::kOffline; }

// What the device would report, should it not answer.
ZoneDescriptor AsDescriptor(ZoneId id, const ZoneRecord& zone) {
  ZoneState state = ZoneState::kClosed;
  if (zone.phase == ZonePhase::kOffline) {
    state = ZoneState::kOffline;
  } else if (zone.phase == ZonePhase::kRetired) {
    state = ZoneState::kReadOnly;
  } else if (zone.write_pointer == 0) {
    state = ZoneState::kEmpty;
  } else if (zone.room() == 0) {
    state = ZoneState::kFull;
  }
  return {id, state, zone.capacity, zone.write_pointer};
}

}  // namespace

struct ZonePool::Impl {
  // Why no zone could be given.
  enum class Lack : uint8_t {
    kOpenZone,    // as many zones are leased as may be open
    kActiveZone,  // a zone has to stop being active
    kSpace,       // a zone has to be reset
  };
  struct Attempt {
    ZoneLease lease;  // held where it was granted
    Lack lack = Lack::kSpace;
  };
  struct Lease {
    uint64_t id = 0;
    BudgetClass budget_class = BudgetClass::kData;
    bool urgent = false;
    bool makes_space = false;                 // compaction, or collection
    std::optional<ActiveBudget::Token> open;  // until the zone is full
    bool writing = false;
    uint64_t last_used = 0;  // by use_count_
  };
  // Who waits for a zone.
  struct Waiter {
    BudgetClass budget_class = BudgetClass::kData;
    int64_t began_ns = 0;                                  // since when; 0: it has not waited yet
    int64_t others_deadline_ns = 0;                        // 0: others held no active zones yet
    bool counted = false;                                  // in stats.space_waits
    CollectorRounds::Since no_space;                       // and nothing but the collector to wait for
    std::optional<uint64_t> durable_failures_before = {};  // those of make_durable
    std::optional<uint64_t> checkpoint = {};               // the number of the one that was asked for
    bool checkpoint_ended = false;
  };
  // A reset or finish in flight.
  struct Job {
    Impl* impl = nullptr;
    ZoneId zone;
    DeviceRequest request;
  };

  Impl(ZonedDevice& d, Options o, std::unique_ptr<PlacementPolicy> p, std::span<const ZoneDescriptor> report);
  ~Impl() { Stop(); }

  // --- Acquiring ---
  Status CheckWritable() const ISOZONE_REQUIRES(mu);
  Result<ZoneLease> Acquire(const ZoneRequest& request) ISOZONE_EXCLUDES(mu);
  Result<ZoneLease> AcquireMetadata(std::span<const ZoneId> apart_from) ISOZONE_EXCLUDES(mu);
  Result<ZoneId> SetAsideMetadata(std::span<const ZoneId> apart_from) ISOZONE_EXCLUDES(mu);
  Result<ZoneLease> ReopenMetadata(ZoneId zone) ISOZONE_EXCLUDES(mu);
  // Repeats `attempt` (Attempt(), the mutex held) until it is granted or nothing can make it succeed.
  template <typename AttemptFunction>
  Result<ZoneLease> GrantWhenPossible(BudgetClass c, AttemptFunction attempt) ISOZONE_REQUIRES(mu);
  Result<ZoneLease> GrantConfined(const ZoneRequest& request) ISOZONE_REQUIRES(mu);
  // Waits for something that may end the lack, or does something about it. False: nothing can.
  bool AwaitHelp(Waiter& waiter, Lack lack) ISOZONE_REQUIRES(mu);
  bool AwaitCheckpoint(Waiter& waiter) ISOZONE_REQUIRES(mu);
  bool AwaitOthers(Waiter& waiter) ISOZONE_REQUIRES(mu);
  static constexpr int64_t kNoDeadline = INT64_MAX;
  void AwaitChange(Waiter& waiter, int64_t deadline_ns = kNoDeadline) ISOZONE_REQUIRES(mu);
  std::optional<ZoneLease> TryAcquire(const ZoneRequest& request) ISOZONE_EXCLUDES(mu);
  // Of the empty ones, beyond what is kept.
  bool HasSpareZones() const ISOZONE_REQUIRES(mu) {
    return table.empty().size() > EmptyKept(BudgetClass::kData) + table.size() / kSpareZonesPart;
  }
  PlacementQuery QueryFor(const ZoneRequest& request) ISOZONE_REQUIRES(mu);
  Placement Place(const PlacementQuery& query) const ISOZONE_REQUIRES(mu);
  Attempt TryPlace(const ZoneRequest& request) ISOZONE_REQUIRES(mu);
  Attempt TryMetadata(std::span<const ZoneId> apart_from) ISOZONE_REQUIRES(mu);
  // One of the first zones where `begins`, one of the others else, as long as there are any.
  std::optional<ZoneId> ChooseMetadata(std::span<const ZoneId> apart_from, bool begins) const ISOZONE_REQUIRES(mu);
  std::optional<ZoneId> HomeZone(std::span<const ZoneId> apart_from, bool apart) const ISOZONE_REQUIRES(mu);
  std::optional<ZoneId> OtherZone(std::span<const ZoneId> apart_from, bool apart) const ISOZONE_REQUIRES(mu);
  bool IsApart(ZoneId zone, std::span<const ZoneId> others) const ISOZONE_REQUIRES(mu);
  bool HomeZoneIsComing() const ISOZONE_REQUIRES(mu);
  // Empty zones that are kept for metadata, which has none of its own for them yet; and so for `c` among others.
  uint32_t EmptyForMetadata() const ISOZONE_REQUIRES(mu);
  uint32_t EmptyKept(BudgetClass c) const ISOZONE_REQUIRES(mu) { return EmptyKeptFrom(c, EmptyForMetadata()); }
  Attempt TryReopen(ZoneId zone) ISOZONE_REQUIRES(mu);
  ZoneLease GrantLease(ZoneId zone, ZoneUse use, DataClass data, BudgetClass c, bool urgent) ISOZONE_REQUIRES(mu);
  ZoneLease GrantTo(const ZoneRequest& request, ZoneId zone, bool urgent) ISOZONE_REQUIRES(mu);
  GcSpace SpaceForGc() const ISOZONE_REQUIRES(mu);
  bool MayCollect(ZoneId zone) const ISOZONE_REQUIRES(mu);
  GcCandidate AsCandidate(ZoneId id) const ISOZONE_REQUIRES(mu);
  void Pace(uint64_t bytes) ISOZONE_EXCLUDES(mu);
  void NoteSpace() ISOZONE_REQUIRES(mu);
  double FreeToUsers() const ISOZONE_REQUIRES(mu);
  bool CollectorMayHelp(Waiter& waiter) const ISOZONE_REQUIRES(mu);
  bool HelpIsComing(Waiter& waiter, Lack lack) const ISOZONE_REQUIRES(mu);
  bool ResetIsComing(Waiter& waiter) const ISOZONE_REQUIRES(mu);
  bool RevokeIdleLease(Lack lack, BudgetClass c) ISOZONE_REQUIRES(mu);
  Status NothingLeft(Lack lack) const ISOZONE_REQUIRES(mu);

  // --- Leases ---
  Lease* FindLease(const ZoneLease& lease) ISOZONE_REQUIRES(mu);
  bool BeginWrite(const ZoneLease& lease) ISOZONE_EXCLUDES(mu);
  void EndWrite(const ZoneLease& lease, uint64_t bytes) ISOZONE_EXCLUDES(mu);
  void EndFailedWrite(const ZoneLease& lease) ISOZONE_EXCLUDES(mu);
  void NoteFailedWrite(const ZoneLease& lease) ISOZONE_EXCLUDES(mu);
  void EndRefusedWrite(const ZoneLease& lease) ISOZONE_EXCLUDES(mu);
  void LeaveFailed(ZoneId zone, const Result<ZoneDescriptor>& found) ISOZONE_REQUIRES(mu);
  void Release(const ZoneLease& lease) ISOZONE_EXCLUDES(mu);
  void EndLease(ZoneId zone) ISOZONE_REQUIRES(mu);
  uint32_t& LoadOf(ZoneId zone, const Lease& lease) ISOZONE_REQUIRES(mu);
  void EraseLease(ZoneId zone) ISOZONE_REQUIRES(mu);
  void PassOnShare(ZoneId zone) ISOZONE_REQUIRES(mu);
  std::optional<ZoneId> CollectorsZone() const ISOZONE_REQUIRES(mu);

  // --- Background work. What does not call make_durable is done by whoever needs it done. ---
  void Start() ISOZONE_EXCLUDES(mu);
  void Stop() ISOZONE_EXCLUDES(mu);
  void RunInBackground() ISOZONE_EXCLUDES(mu);
  void ResetForTheAsking(Lack lack) ISOZONE_REQUIRES(mu);
  void AskForDead() ISOZONE_REQUIRES(mu);
  bool ResetIsWanted() const ISOZONE_REQUIRES(mu);
  bool KeepsDeadIdle() const ISOZONE_REQUIRES(mu);
  bool IsToBeReset(ZoneId zone) const ISOZONE_REQUIRES(mu);
  uint32_t TokensToCome() const ISOZONE_REQUIRES(mu);
  bool DurableIsDue() const ISOZONE_REQUIRES(mu);
  bool DurableMaySucceed(Waiter& waiter) const ISOZONE_REQUIRES(mu);
  bool ResetIsDue() const ISOZONE_REQUIRES(mu);
  void AwaitWork() ISOZONE_REQUIRES(mu);
  bool WorkIsDue() const ISOZONE_REQUIRES(mu);
  void WakeIfDue() ISOZONE_REQUIRES(mu);
  // Each returns true if it has done something, and then has given up the mutex meanwhile.
  bool FinishCompleted() ISOZONE_REQUIRES(mu);
  bool CountOthers() ISOZONE_REQUIRES(mu);
  void NoteReset(ZoneId id) ISOZONE_REQUIRES(mu);
  bool ResetReleased() ISOZONE_REQUIRES(mu);
  bool ResetDead() ISOZONE_REQUIRES(mu);
  size_t ResetsToStart() const ISOZONE_REQUIRES(mu);
  // Which zones are finished, and for whom.
  enum class Finishes : uint8_t {
    kAll,          // those of logs too, which wait for make_durable: the background thread's
    kData,         // at once
    kForMetadata,  // at once; what waits for make_durable waits for metadata, and is no help to it
  };
  bool FinishZones(Finishes which) ISOZONE_REQUIRES(mu);
  uint32_t TokensWanted(BudgetClass c) const ISOZONE_REQUIRES(mu);
  bool IsShort(BudgetClass c) const ISOZONE_REQUIRES(mu);
  uint32_t FinishesWanted(Finishes which) const ISOZONE_REQUIRES(mu);
  std::optional<ZoneId> NextFinish(Finishes which) const ISOZONE_REQUIRES(mu);
  std::optional<ZoneId> NextFailedFinish() const ISOZONE_REQUIRES(mu);
  // An active zone of data, in which nothing lives, and nothing is under way.
  std::optional<ZoneId> DeadActive() const ISOZONE_REQUIRES(mu);
  bool MakeDurable() ISOZONE_REQUIRES(mu);
  void SubmitAll(DeviceOp op, std::span<const ZoneId> zones) ISOZONE_REQUIRES(mu);
  void HandleFailure(ZoneId zone, DeviceOp op, DeviceStatus status) ISOZONE_REQUIRES(mu);
  void LeaveBroken(ZoneId zone, const Result<ZoneDescriptor>& found) ISOZONE_REQUIRES(mu);
  Result<ZoneDescriptor> Report(ZoneId zone) const;
  void Latch(const Status& status) ISOZONE_REQUIRES(mu);

  ZonePool* owner = nullptr;  // set once, by its constructor
  ZonedDevice& device;
  const Options options;
  const std::unique_ptr<PlacementPolicy> policy;
  Histogram wait_ns;
  Histogram pace_ns;
  Histogram reset_written_percent;
  DeletionDelays deletion_delays;

  mutable Mutex mu;
  CondVar work;     // for the background thread
  CondVar changed;  // for those who wait: a zone, a token, a lease or an error
  ZoneTable table ISOZONE_GUARDED_BY(mu);
  ActiveBudget active ISOZONE_GUARDED_BY(mu);
  ActiveBudget open ISOZONE_GUARDED_BY(mu);
  // One for each zone that is active, or leased and about to be.
  std::unordered_map<ZoneId, ActiveBudget::Token> active_tokens ISOZONE_GUARDED_BY(mu);
  std::unordered_map<ZoneId, Lease> leases ISOZONE_GUARDED_BY(mu);
  std::vector<GroupLoad> loads ISOZONE_GUARDED_BY(mu);  // by group: the leases in it
  std::unordered_map<ZoneId, Job> jobs ISOZONE_GUARDED_BY(mu);
  std::vector<ZoneId> completed ISOZONE_GUARDED_BY(mu);                     // jobs that the device has done
  std::unordered_map<ZoneId, uint64_t> finished_at ISOZONE_GUARDED_BY(mu);  // bytes that were written to them before
  std::vector<ZoneId> failed_writes ISOZONE_GUARDED_BY(mu);  // leased, written no more, not looked at yet
  // Broken, to be finished so that they cost no token: how often that has failed.
  std::map<ZoneId, uint32_t> failed_active ISOZONE_GUARDED_BY(mu);
  std::array<uint32_t, kBudgetClassCount> waiting_for_token ISOZONE_GUARDED_BY(mu){};
  CollectorRounds rounds ISOZONE_GUARDED_BY(mu);
  WritePace pace ISOZONE_GUARDED_BY(mu);
  std::atomic<uint64_t> logged{0};                     // bytes of logs that `pace` has not been told of
  std::set<ZoneId> asked_for ISOZONE_GUARDED_BY(mu);   // what is dead of these is reset, whatever reset_at_once says
  int64_t others_until_ns ISOZONE_GUARDED_BY(mu) = 0;  // when others are believed to have given their active zones back
  std::set<ZoneId> set_aside ISOZONE_GUARDED_BY(mu);   // empty zones that a copy of the metadata goes on in
  uint64_t use_count ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t next_lease_id ISOZONE_GUARDED_BY(mu) = 1;
  ZonePoolStats stats ISOZONE_GUARDED_BY(mu);
  Status first_error ISOZONE_GUARDED_BY(mu);  // since the last Settle
  // Why make_durable failed when it was called last. kReadOnly is for good; after any other error it is called again.
  Status durable_error ISOZONE_GUARDED_BY(mu);
  uint64_t durable_failures ISOZONE_GUARDED_BY(mu) = 0;  // so far
  int64_t durable_again_ns ISOZONE_GUARDED_BY(mu) = 0;   // not to be called before
  std::thread thread;                                    // touched by Start and Stop only
  uint32_t space_makers ISOZONE_GUARDED_BY(mu) = 0;      // zones leased, or waited for, to make space
  uint32_t collecting ISOZONE_GUARDED_BY(mu) = 0;        // of these: the collector's
  uint32_t paced ISOZONE_GUARDED_BY(mu) = 0;             // users that wait for what makes space
  uint32_t metadata_reserve ISOZONE_GUARDED_BY(mu) = 0;  // zones in all: ReserveForMetadata
  std::atomic<bool> is_tight{false};                     // writing costs something
  bool reset_at_once ISOZONE_GUARDED_BY(mu) = true;
  uint32_t undurable_finishes ISOZONE_GUARDED_BY(mu) = 0;  // begun, and waiting for make_durable
  bool refused ISOZONE_GUARDED_BY(mu) = false;             // by the device, which has not been looked at since
  bool data_token_wanted ISOZONE_GUARDED_BY(mu) = false;   // data went where it does not belong, for want of one
  bool started ISOZONE_GUARDED_BY(mu) = false;
  bool stopping ISOZONE_GUARDED_BY(mu) = false;
};

ZonePool::Impl::Impl(ZonedDevice& d, Options o, std::unique_ptr<PlacementPolicy> p,
                     std::span<const ZoneDescriptor> report)
    : device(d),
      options(std::move(o)),
      policy(std::move(p)),
      table(report, options.groups),
      active(d.geometry().max_active_zones),
      open(d.geometry().max_open_zones) {
  const MutexLock lock(mu);
  loads.resize(table.groups().count());
  for (uint32_t i = 0; i < report.size(); ++i) {
    const ZoneId zone(i);
    const bool kept = i < HomeZones(options.metadata_copies);
    if (kept) table.KeepForMetadata(zone);
    if (IsActive(report[i].state)) {
      active_tokens.emplace(zone, active.Adopt(kept ? BudgetClass::kMetadata : BudgetClass::kData));
    }
  }
}

// --- Acquiring ---

Status ZonePool::Impl::CheckWritable() const {
  if (options.read_only) return Status::ReadOnly("the file system is mounted read-only");
  if (stopping) return Status::Aborted("the file system is being unmounted");
  return Status::Ok();
}

Result<ZoneLease> ZonePool::Impl::Acquire(const ZoneRequest& request) {
  assert(request.use == ZoneUse::kData || request.use == ZoneUse::kLog);
  const uint64_t capacity = device.geometry().zone_capacity;
  if (request.min_room > capacity) {
    return Status::InvalidArgument(
        fmt::format("a zone of {} bytes cannot take {} bytes at once", capacity, request.min_room));
  }
  const MutexLock lock(mu);
  if (request.confined) return GrantConfined(request);
  const uint32_t maker = MakesSpace(request) ? 1 : 0;
  const uint32_t collector = request.gc ? 1 : 0;
  space_makers += maker;
  collecting += collector;
  auto granted = GrantWhenPossible(ClassOf(request), [&]() ISOZONE_REQUIRES(mu) { return TryPlace(request); });
  space_makers -= maker;
  collecting -= collector;
  return granted;
}

Result<ZoneLease> ZonePool::Impl::AcquireMetadata(std::span<const ZoneId> apart_from) {
  const MutexLock lock(mu);
  return GrantWhenPossible(BudgetClass::kMetadata, [&]() ISOZONE_REQUIRES(mu) { return TryMetadata(apart_from); });
}

// It takes no share of the active zones yet.
Result<ZoneId> ZonePool::Impl::SetAsideMetadata(std::span<const ZoneId> apart_from) {
  const MutexLock lock(mu);
  Waiter waiter;
  waiter.budget_class = BudgetClass::kMetadata;
  for (;;) {
    FinishCompleted();
    ISOZONE_RETURN_IF_ERROR(CheckWritable());
    if (const auto zone = ChooseMetadata(apart_from, /*begins=*/false)) {
      table.SetUse(*zone, ZoneUse::kMetadata);
      set_aside.insert(*zone);
      return *zone;
    }
    if (!AwaitHelp(waiter, Lack::kSpace)) return NothingLeft(Lack::kSpace);
  }
}

Result<ZoneLease> ZonePool::Impl::ReopenMetadata(ZoneId zone) {
  const MutexLock lock(mu);
  const ZoneRecord& record = table.at(zone);
  const bool reopenable =
      record.phase == ZonePhase::kIdle || (record.phase == ZonePhase::kEmpty && set_aside.contains(zone));
  if (record.use != ZoneUse::kMetadata || !reopenable || record.released) {
    return Status::InvalidArgument(fmt::format("zone {} ({}) cannot be written on: it is full, leased or broken",
                                               zone.value(), ZoneUseName(record.use)));
  }
  return GrantWhenPossible(BudgetClass::kMetadata, [&]() ISOZONE_REQUIRES(mu) { return TryReopen(zone); });
}

template <typename AttemptFunction>
Result<ZoneLease> ZonePool::Impl::GrantWhenPossible(BudgetClass c, AttemptFunction attempt) {
  Waiter waiter;
  waiter.budget_class = c;
  for (;;) {
    FinishCompleted();
    ISOZONE_RETURN_IF_ERROR(CheckWritable());
    Attempt result = attempt();
    if (result.lease.held()) {
      if (waiter.began_ns != 0) wait_ns.Add(static_cast<uint64_t>(MonotonicNs() - waiter.began_ns));
      WakeIfDue();
      return std::move(result.lease);
    }
    uint32_t& waiting = waiting_for_token[static_cast<size_t>(c)];
    const uint32_t token = result.lack == Lack::kActiveZone ? 1 : 0;
    waiting += token;
    const bool go_on = AwaitHelp(waiter, result.lack);
    waiting -= token;
    if (!go_on) return NothingLeft(result.lack);
  }
}

Result<ZoneLease> ZonePool::Impl::GrantConfined(const ZoneRequest& request) {
  FinishCompleted();
  ISOZONE_RETURN_IF_ERROR(CheckWritable());
  const PlacementQuery query = QueryFor(request);
  const auto zone = open.Available(ClassOf(request)) > 0 ? ClosestDeathIdle(table, query) : std::nullopt;
  if (zone && table.at(*zone).live > 0) return GrantTo(request, *zone, query.urgent);
  return Status::NoSpace("no zone that is partly written has room for what is collected");
}

// The ladder for a caller that no zone can be given to, from what costs nobody anything to giving up.
bool ZonePool::Impl::AwaitHelp(Waiter& waiter, Lack lack) {
  const BudgetClass c = waiter.budget_class;
  const Finishes which = c == BudgetClass::kMetadata ? Finishes::kForMetadata : Finishes::kData;
  if (ResetReleased() || FinishZones(which)) return true;
  ResetForTheAsking(lack);
  if (HelpIsComing(waiter, lack)) {
    waiter.no_space = {};  // rounds under way meanwhile do not know of it
    AwaitChange(waiter);
    return true;
  }
  if (c == BudgetClass::kGc && lack == Lack::kSpace && AwaitCheckpoint(waiter)) return true;
  // A writer that is between writes loses its zone before anybody waits for one.
  if (RevokeIdleLease(lack, c)) return true;
  if (lack == Lack::kActiveZone && AwaitOthers(waiter)) return true;
  if (lack == Lack::kSpace && CollectorMayHelp(waiter)) {
    if (!std::exchange(waiter.counted, true)) ++stats.space_waits;
    const CollectorRounds::Waiting wanted(rounds);
    options.want_space();
    AwaitChange(waiter);
    return true;
  }
  // The journal may hold zones that it does not need.
  if (lack == Lack::kSpace && IsOfFiles(c) && AwaitCheckpoint(waiter)) return true;
  // Somebody in the middle of a write is between writes soon. Metadata and the collector take no room from others.
  const bool frees_something = lack != Lack::kSpace || IsOfFiles(c);
  const bool writing = std::any_of(leases.begin(), leases.end(), [](const auto& l) { return l.second.writing; });
  if (!writing || !frees_something) return false;
  AwaitChange(waiter);
  return true;
}

void ZonePool::Impl::AwaitChange(Waiter& waiter, int64_t deadline_ns) {
  if (waiter.began_ns == 0) {
    waiter.began_ns = MonotonicNs();
    ++stats.waits;
  }
  WakeIfDue();
  if (deadline_ns == kNoDeadline) {
    changed.Wait(mu);
  } else {
    changed.WaitUntil(mu, deadline_ns);
  }
}

std::optional<ZoneLease> ZonePool::Impl::TryAcquire(const ZoneRequest& request) {
  const MutexLock lock(mu);
  FinishCompleted();
  if (!CheckWritable().ok() || open.Available(BudgetClass::kData) <= kSpareTokens) return std::nullopt;
  PlacementQuery query = QueryFor(request);
  query.widen = true;
  query.taken_groups = request.taken_groups;
  query.token_available = active.Available(BudgetClass::kData) > kSpareTokens;
  query.empty_available = HasSpareZones();
  const Placement placement = Place(query);
  using Action = Placement::Action;
  if (placement.action != Action::kUseIdle && placement.action != Action::kOpenEmpty) return std::nullopt;
  return GrantTo(request, *placement.zone, query.urgent);
}

// Dead zones, where they give back what is missing: also those that would wait for the collector, now or from a change of
// the scheme on.
void ZonePool::Impl::ResetForTheAsking(Lack lack) {
  if (lack == Lack::kSpace) AskForDead();
  if (lack != Lack::kActiveZone) return;
  for (const auto& [zone, token] : active_tokens) {
    if (table.at(zone).dead()) asked_for.insert(zone);
  }
}

void ZonePool::Impl::AskForDead() {
  for (auto zone = table.dead().First(); zone; zone = table.dead().FirstFrom(ZoneId(zone->value() + 1))) {
    asked_for.insert(*zone);
  }
}

// While others hold active zones; for a bounded time. False: they do not, or it is over.
bool ZonePool::Impl::AwaitOthers(Waiter& waiter) {
  if (active.withheld() == 0 || !started) return false;
  const int64_t now_ns = MonotonicNs();
  if (waiter.others_deadline_ns == 0) waiter.others_deadline_ns = now_ns + PatientDevice::kPatienceNs;
  if (now_ns >= waiter.others_deadline_ns) return false;
  AwaitChange(waiter, std::min(waiter.others_deadline_ns, others_until_ns));
  return true;
}

// Asks for a checkpoint where that was not done, and waits a moment. False: it has ended, and what it gave back has been
// looked at since.
bool ZonePool::Impl::AwaitCheckpoint(Waiter& waiter) {
  constexpr int64_t kMomentNs = 10 * kMillisecondNs;
  if (!options.want_checkpoint || !started || waiter.checkpoint_ended) return false;
  {
    const MutexUnlock unlock(mu);
    if (!waiter.checkpoint) waiter.checkpoint = options.want_checkpoint();
    waiter.checkpoint_ended = !options.checkpoint_pending(*waiter.checkpoint);
  }
  if (!waiter.checkpoint_ended) AwaitChange(waiter, MonotonicNs() + kMomentNs);
  return true;
}

PlacementQuery ZonePool::Impl::QueryFor(const ZoneRequest& request) {
  const BudgetClass c = ClassOf(request);
  PlacementQuery query;
  query.use = request.use;
  query.lifetime = request.lifetime;
  query.level = request.level;
  query.heat = request.heat;
  query.min_room = std::max<uint64_t>(request.min_room, device.geometry().block_size);
  query.live_only = request.gc;
  query.token_available = active.Available(c) > 0;
  query.empty_available = table.empty().size() > EmptyKept(c);
  query.urgent = request.urgent || request.use == ZoneUse::kLog;
  query.isolate = options.isolation;
  query.keep_away = options.keep_away;
  query.loads = loads;
  query.turn = static_cast<uint32_t>(next_lease_id);
  return query;
}

Placement ZonePool::Impl::Place(const PlacementQuery& query) const {
  return query.use == ZoneUse::kLog ? PlaceLog(table, query) : policy->PlaceData(table, query);
}

ZonePool::Impl::Attempt ZonePool::Impl::TryPlace(const ZoneRequest& request) {
  const BudgetClass c = ClassOf(request);
  if (open.Available(c) == 0) return {{}, Lack::kOpenZone};
  PlacementQuery query = QueryFor(request);
  if (c == BudgetClass::kData && query.token_available) data_token_wanted = false;
  Placement placement = Place(query);
  if (c == BudgetClass::kGc && placement.action == Placement::Action::kNeedToken) {
    if (const auto left = CollectorsZone()) {
      PassOnShare(*left);
      query.token_available = active.Available(c) > 0;
      placement = Place(query);
    }
  }
  // Rather other classes together than a collector that cannot make room.
  if (request.gc && placement.action == Placement::Action::kNeedSpace) {
    if (const auto any = ClosestDeathIdle(table, query)) placement = {Placement::Action::kUseIdle, *any};
  }
  switch (placement.action) {
    case Placement::Action::kOpenEmpty:
    case Placement::Action::kUseIdle:
      return {GrantTo(request, *placement.zone, query.urgent), {}};
    case Placement::Action::kNeedToken:
      if (!placement.zone) return {{}, Lack::kActiveZone};
      data_token_wanted = true;
      ResetForTheAsking(Lack::kActiveZone);
      WakeIfDue();
      return {GrantTo(request, *placement.zone, query.urgent), {}};
    case Placement::Action::kNeedSpace:
      return {{}, Lack::kSpace};
  }
  return {{}, Lack::kSpace};
}

ZonePool::Impl::Attempt ZonePool::Impl::TryMetadata(std::span<const ZoneId> apart_from) {
  if (open.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kOpenZone};
  if (active.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kActiveZone};
  const auto zone = ChooseMetadata(apart_from, /*begins=*/true);
  if (!zone) return {{}, Lack::kSpace};
  return {GrantLease(*zone, ZoneUse::kMetadata, Lifetime::kNotSet, BudgetClass::kMetadata, /*urgent=*/true), {}};
}

// The first zones are what a mount looks at; another is worse, but better than the group of the other copy.
std::optional<ZoneId> ZonePool::Impl::ChooseMetadata(std::span<const ZoneId> apart_from, bool begins) const {
  std::optional<ZoneId> zone;
  if (begins) {
    zone = HomeZone(apart_from, /*apart=*/true);
    if (!zone && HomeZoneIsComing()) return std::nullopt;
    const bool plenty = table.empty().size() > EmptyKept(BudgetClass::kData);
    if (!zone && plenty) zone = OtherZone(apart_from, /*apart=*/true);
    if (!zone) zone = HomeZone(apart_from, /*apart=*/false);
  }
  if (!zone) zone = OtherZone(apart_from, /*apart=*/true);
  if (!zone) zone = OtherZone(apart_from, /*apart=*/false);
  if (!zone && !begins) zone = HomeZone(apart_from, /*apart=*/false);
  return zone;
}

bool ZonePool::Impl::IsApart(ZoneId zone, std::span<const ZoneId> others) const {
  const uint32_t group = table.groups().of(zone);
  return std::none_of(others.begin(), others.end(),
                      [&](ZoneId other) ISOZONE_REQUIRES(mu) { return table.groups().of(other) == group; });
}

std::optional<ZoneId> ZonePool::Impl::HomeZone(std::span<const ZoneId> apart_from, bool apart) const {
  const bool told = table.groups().count() > 1;
  for (uint32_t i = 0; i < HomeZones(options.metadata_copies); ++i) {
    const ZoneRecord& zone = table.at(ZoneId(i));
    if (zone.phase != ZonePhase::kEmpty || set_aside.contains(ZoneId(i))) continue;
    if (!apart || !told || IsApart(ZoneId(i), apart_from)) return ZoneId(i);
  }
  return std::nullopt;
}

std::optional<ZoneId> ZonePool::Impl::OtherZone(std::span<const ZoneId> apart_from, bool apart) const {
  if (!apart) return table.empty().First();
  if (table.groups().count() < 2) return std::nullopt;
  for (uint32_t group = 0; group < table.groups().count(); ++group) {
    const auto zone = table.EmptyIn(group);
    if (zone && IsApart(*zone, apart_from)) return zone;
  }
  return std::nullopt;
}

bool ZonePool::Impl::HomeZoneIsComing() const {
  for (uint32_t i = 0; i < HomeZones(options.metadata_copies); ++i) {
    const ZoneRecord& zone = table.at(ZoneId(i));
    if (jobs.contains(ZoneId(i)) || (zone.released && zone.dead())) return true;
  }
  return false;
}

uint32_t ZonePool::Impl::EmptyForMetadata() const {
  return Shortage(metadata_reserve, table.totals().kept + table.totals().lent);
}

ZonePool::Impl::Attempt ZonePool::Impl::TryReopen(ZoneId zone) {
  const ZoneRecord& record = table.at(zone);
  if (open.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kOpenZone};
  const bool needs_token = !active_tokens.contains(zone);
  if (needs_token && active.Available(BudgetClass::kMetadata) == 0) return {{}, Lack::kActiveZone};
  set_aside.erase(zone);
  return {GrantLease(zone, record.use, record.data_class(), BudgetClass::kMetadata, /*urgent=*/true), {}};
}

ZoneLease ZonePool::Impl::GrantTo(const ZoneRequest& request, ZoneId zone, bool urgent) {
  const DataClass data(request.lifetime, request.level, request.heat);
  const ZoneRecord& record = table.at(zone);
  if (record.phase == ZonePhase::kIdle && record.use == ZoneUse::kData && record.live > 0 &&
      record.data_class() != data) {
    ++stats.mixed_classes;
  }
  ZoneLease lease = GrantLease(zone, request.use, data, ClassOf(request), urgent);
  if (MakesSpace(request)) {
    leases.at(zone).makes_space = true;
    ++space_makers;
    collecting += request.gc ? 1 : 0;
  }
  return lease;
}

// The tokens are there: the caller has looked.
ZoneLease ZonePool::Impl::GrantLease(ZoneId zone, ZoneUse use, DataClass data, BudgetClass c, bool urgent) {
  if (!active_tokens.contains(zone)) active_tokens.emplace(zone, *active.TryTake(c));
  table.Lease(zone, use, data);
  asked_for.erase(zone);
  Lease& lease = leases[zone];
  lease.id = next_lease_id++;
  lease.budget_class = c;
  lease.urgent = urgent;
  ++LoadOf(zone, lease);
  lease.open = open.TryTake(c);
  lease.last_used = ++use_count;
  ZoneLease granted;
  granted.pool_ = owner;
  granted.zone_ = zone;
  granted.lease_id_ = lease.id;
  granted.write_pointer_ = table.at(zone).write_pointer;
  granted.capacity_ = table.at(zone).capacity;
  return granted;
}

// Waiting makes sense: work is under way, or the background thread is about to take it up, that may end the lack.
bool ZonePool::Impl::HelpIsComing(Waiter& waiter, Lack lack) const {
  if (lack == Lack::kOpenZone) return false;
  const BudgetClass c = waiter.budget_class;
  // What is at the device comes back in any case.
  if (!jobs.empty() && c == BudgetClass::kMetadata) return true;
  // The thread may be in make_durable, and that wait for this very caller.
  if (c == BudgetClass::kMetadata || !started || durable_error.Is(StatusCode::kReadOnly)) return false;
  if (lack == Lack::kSpace) return ResetIsComing(waiter);
  if (table.totals().finishing > 0 || NextFinish(Finishes::kData)) return true;
  if (NextFinish(Finishes::kAll) && DurableMaySucceed(waiter)) return true;
  return ResetIsComing(waiter) && TokensToCome() > 0;
}

// With the reset of what is dead.
uint32_t ZonePool::Impl::TokensToCome() const {
  return static_cast<uint32_t>(std::ranges::count_if(active_tokens, [this](const auto& entry) ISOZONE_REQUIRES(mu) {
    const ZoneRecord& zone = table.at(entry.first);
    return zone.phase == ZonePhase::kResetting || (zone.dead() && IsToBeReset(entry.first));
  }));
}

// A zone is being reset, or is to be.
bool ZonePool::Impl::ResetIsComing(Waiter& waiter) const {
  return table.totals().resetting > 0 || (ResetIsWanted() && DurableMaySucceed(waiter));
}

// What waits for make_durable counts for so many failures only.
bool ZonePool::Impl::DurableMaySucceed(Waiter& waiter) const {
  if (!waiter.durable_failures_before) waiter.durable_failures_before = durable_failures;
  return durable_failures - *waiter.durable_failures_before < kDurableTries;
}

// Takes the lease that was not used for longest, of those whose going helps.
bool ZonePool::Impl::RevokeIdleLease(Lack lack, BudgetClass c) {
  for (const BudgetClass victim : {BudgetClass::kData, BudgetClass::kLog}) {
    // The room that is left in it, or its place among the open or active zones, which others than its own class can
    // have only where it is borrowed; zones of logs are kept active for logs.
    const bool lends = lack == Lack::kOpenZone     ? open.Borrows(victim)
                       : lack == Lack::kActiveZone ? victim == BudgetClass::kData && active.Borrows(victim)
                                                   : false;
    if (victim != c && !lends) continue;
    const std::pair<const ZoneId, Lease>* oldest = nullptr;
    for (const auto& entry : leases) {
      const Lease& lease = entry.second;
      if (lease.budget_class != victim || lease.writing || !lease.open) continue;
      if (oldest == nullptr || lease.last_used < oldest->second.last_used) oldest = &entry;
    }
    if (oldest == nullptr) continue;
    EndLease(oldest->first);
    ++stats.revoked_leases;
    return true;
  }
  return false;
}

Status ZonePool::Impl::NothingLeft(Lack lack) const {
  if (!durable_error.ok() && !table.dead().empty()) return durable_error.WithContext("no zone can be reset");
  if (lack != Lack::kSpace) {
    return Status::NoSpace(fmt::format(
        "all {} active zones that the device allows are in use: {} for metadata, {} for logs, {} for garbage "
        "collection, {} for data, {} by others",
        device.geometry().max_active_zones, active.used(BudgetClass::kMetadata), active.used(BudgetClass::kLog),
        active.used(BudgetClass::kGc), active.used(BudgetClass::kData), active.withheld()));
  }
  return Status::NoSpace(
      fmt::format("the device is full: {} bytes of files on {}, {} empty zones left, which are kept "
                  "for metadata, logs and garbage collection; delete files",
                  table.totals().live, table.totals().capacity, table.empty().size()));
}

// --- Leases ---

ZonePool::Impl::Lease* ZonePool::Impl::FindLease(const ZoneLease& lease) {
  const auto found = leases.find(lease.zone_);
  return found == leases.end() || found->second.id != lease.lease_id_ ? nullptr : &found->second;
}

bool ZonePool::Impl::BeginWrite(const ZoneLease& lease) {
  const MutexLock lock(mu);
  Lease* held = FindLease(lease);
  if (held == nullptr) return false;
  assert(!held->writing);
  held->writing = true;
  return true;
}

void ZonePool::Impl::EndWrite(const ZoneLease& lease, uint64_t bytes) {
  const MutexLock lock(mu);
  Lease* held = FindLease(lease);
  assert(held != nullptr && held->writing);
  held->writing = false;
  held->last_used = ++use_count;
  table.Advance(lease.zone_, bytes);
  if (held->makes_space) pace.Earn(bytes);
  NoteSpace();
  if (table.at(lease.zone_).room() == 0) {  // no longer active nor open for the device
    held->open.reset();
    active_tokens.erase(lease.zone_);
  }
  changed.SignalAll();
}

void ZonePool::Impl::EndFailedWrite(const ZoneLease& lease) {
  const Result<ZoneDescriptor> found = Report(lease.zone_);
  const MutexLock lock(mu);
  assert(FindLease(lease) != nullptr && FindLease(lease)->writing);
  LeaveFailed(lease.zone_, found);
}

// The lease stays, as that of a write, until FinishCompleted has looked at the zone.
void ZonePool::Impl::NoteFailedWrite(const ZoneLease& lease) {
  const MutexLock lock(mu);
  assert(FindLease(lease) != nullptr && FindLease(lease)->writing);
  failed_writes.push_back(lease.zone_);
  work.Signal();
  changed.SignalAll();
}

// The zone is as it was before the write.
void ZonePool::Impl::EndRefusedWrite(const ZoneLease& lease) {
  const MutexLock lock(mu);
  Lease* held = FindLease(lease);
  assert(held != nullptr && held->writing);
  held->writing = false;
  EndLease(lease.zone_);
}

void ZonePool::Impl::LeaveFailed(ZoneId zone, const Result<ZoneDescriptor>& found) {
  EraseLease(zone);
  LeaveBroken(zone, found);
  // The end of a log or journal is not in the metadata yet: a finish would hide it.
  if (active_tokens.contains(zone) && table.at(zone).use == ZoneUse::kData) failed_active.emplace(zone, 0);
  WakeIfDue();
  changed.SignalAll();
}

void ZonePool::Impl::Release(const ZoneLease& lease) {
  const MutexLock lock(mu);
  if (FindLease(lease) != nullptr) EndLease(lease.zone_);
}

uint32_t& ZonePool::Impl::LoadOf(ZoneId zone, const Lease& lease) {
  GroupLoad& load = loads[table.groups().of(zone)];
  return lease.urgent ? load.urgent : load.others;
}

void ZonePool::Impl::EraseLease(ZoneId zone) {
  const auto lease = leases.extract(zone);
  --LoadOf(zone, lease.mapped());
  space_makers -= lease.mapped().makes_space ? 1 : 0;
  if (lease.mapped().budget_class != BudgetClass::kGc) return;
  --collecting;
  // What the collector leaves is anybody's. It keeps its share with it until it needs another zone: were it data's at
  // once, and one active zone too many, what is left of it would be thrown away by a finish, and be gained back by the
  // next round, for ever.
  if (active.Borrows(BudgetClass::kGc)) PassOnShare(zone);
}

// An active zone that the collector has left becomes data's.
void ZonePool::Impl::PassOnShare(ZoneId zone) {
  if (active_tokens.erase(zone) != 0) active_tokens.emplace(zone, active.Adopt(BudgetClass::kData));
}

// With which the collector has left its share.
std::optional<ZoneId> ZonePool::Impl::CollectorsZone() const {
  for (const auto& [zone, token] : active_tokens) {
    const auto lease = leases.find(zone);
    const bool leased = lease != leases.end() && lease->second.budget_class == BudgetClass::kGc;
    if (token.budget_class() == BudgetClass::kGc && !leased) return zone;
  }
  return std::nullopt;
}

void ZonePool::Impl::EndLease(ZoneId zone) {
  EraseLease(zone);
  table.EndLease(zone);
  const ZonePhase phase = table.at(zone).phase;
  if (phase == ZonePhase::kEmpty || phase == ZonePhase::kFull) active_tokens.erase(zone);
  WakeIfDue();
  changed.SignalAll();
}

// --- Background work ---

void ZonePool::Impl::Start() {
  {
    const MutexLock lock(mu);
    if (options.read_only || started) return;
    started = true;
  }
  thread = std::thread([this] { RunInBackground(); });
}

void ZonePool::Impl::Stop() {
  {
    const MutexLock lock(mu);
    stopping = true;
    work.Signal();
    changed.SignalAll();
  }
  if (thread.joinable()) thread.join();
  // What was started on behalf of a caller, where no thread ran.
  const MutexLock lock(mu);
  while (!jobs.empty()) {
    if (!FinishCompleted()) changed.Wait(mu);
  }
}

void ZonePool::Impl::RunInBackground() {
  const MutexLock lock(mu);
  for (;;) {
    if (FinishCompleted() || CountOthers() || ResetReleased()) continue;
    if (!stopping && FinishZones(DurableIsDue() ? Finishes::kAll : Finishes::kData)) continue;
    if (ResetDead()) continue;
    if (stopping && jobs.empty()) break;
    if (!WorkIsDue()) changed.SignalAll();  // what somebody may wait for has gone another way
    AwaitWork();
  }
  started = false;
  changed.SignalAll();
}

// Until there is some, or it is time to try again what failed.
void ZonePool::Impl::AwaitWork() {
  int64_t until_ns = kNoDeadline;
  if (!durable_error.ok() && (ResetIsWanted() || NextFinish(Finishes::kAll))) until_ns = durable_again_ns;
  if (active.withheld() > 0) until_ns = std::min(until_ns, others_until_ns);
  if (until_ns == kNoDeadline) {
    work.Wait(mu);
  } else {
    work.WaitUntil(mu, until_ns);
  }
}

// Learns how many active zones others hold, or forgets it after a while, to try again.
bool ZonePool::Impl::CountOthers() {
  if (active.withheld() > 0 && MonotonicNs() >= others_until_ns) {
    active.Withhold(0);
    changed.SignalAll();
  }
  if (!std::exchange(refused, false)) return false;
  const DeviceGeometry& geometry = device.geometry();
  if (geometry.max_active_zones == 0) return false;
  uint32_t ours = 0;
  {
    const MutexUnlock unlock(mu);
    std::vector<ZoneDescriptor> report(geometry.zone_count);
    if (!device.ReportZones(ZoneId(0), report).ok()) return true;
    ours = static_cast<uint32_t>(std::ranges::count_if(report, [](const auto& z) { return IsActive(z.state); }));
  }
  active.Withhold(geometry.max_active_zones - std::min(ours, geometry.max_active_zones));
  others_until_ns = MonotonicNs() + kOthersNs;
  return true;
}

bool ZonePool::Impl::DurableIsDue() const { return durable_error.ok() || MonotonicNs() >= durable_again_ns; }

bool ZonePool::Impl::ResetIsDue() const { return ResetIsWanted() && DurableIsDue(); }

bool ZonePool::Impl::ResetIsWanted() const {
  if (durable_error.Is(StatusCode::kReadOnly) || table.dead().empty()) return false;
  if (reset_at_once && (table.dead().size() > table.totals().dead_idle || !KeepsDeadIdle())) return true;
  return std::any_of(asked_for.begin(), asked_for.end(),
                     [this](ZoneId zone) ISOZONE_REQUIRES(mu) { return table.dead().Contains(zone); });
}

// A dead zone with room is gone on with, so that it is reset when it is full, not for the little that was written to it:
// as long as empty zones, and active ones, are plenty.
bool ZonePool::Impl::KeepsDeadIdle() const {
  return policy->parallel() && !stopping && HasSpareZones() && active.Available(BudgetClass::kData) > kSpareTokens;
}

bool ZonePool::Impl::IsToBeReset(ZoneId zone) const {
  return asked_for.contains(zone) || (reset_at_once && (!table.at(zone).reusable_dead() || !KeepsDeadIdle()));
}

bool ZonePool::Impl::WorkIsDue() const {
  const ZoneTotals& totals = table.totals();
  return ResetIsDue() || totals.released > 0 || totals.resetting > 0 || totals.finishing > 0 || NextFailedFinish() ||
         NextFinish(DurableIsDue() ? Finishes::kAll : Finishes::kData);
}

void ZonePool::Impl::WakeIfDue() {
  if (WorkIsDue()) work.Signal();
}

bool ZonePool::Impl::FinishCompleted() {
  if (completed.empty() && failed_writes.empty()) return false;
  while (!failed_writes.empty()) {
    const ZoneId zone = failed_writes.back();
    failed_writes.pop_back();
    const Result<ZoneDescriptor> found = [&]() ISOZONE_REQUIRES(mu) {
      const MutexUnlock unlock(mu);
      return Report(zone);
    }();
    LeaveFailed(zone, found);
  }
  while (!completed.empty()) {
    const ZoneId zone = completed.back();
    completed.pop_back();
    const auto job = jobs.extract(zone);
    const DeviceRequest& request = job.mapped().request;
    if (request.status != DeviceStatus::kSuccess) {
      HandleFailure(zone, request.op, request.status);
    } else if (request.op == DeviceOp::kReset) {
      deletion_delays.Reset(zone, MonotonicNs());
      NoteReset(zone);
      table.EndReset(zone);
      asked_for.erase(zone);
      active_tokens.erase(zone);
      failed_active.erase(zone);
      ++stats.resets;
    } else {
      finished_at[zone] = table.at(zone).write_pointer;
      table.EndFinish(zone);
      active_tokens.erase(zone);
      failed_active.erase(zone);
      ++stats.finishes;
    }
  }
  NoteSpace();
  changed.SignalAll();
  return true;
}

void ZonePool::Impl::NoteReset(ZoneId id) {
  const ZoneRecord& zone = table.at(id);
  uint64_t written = zone.write_pointer;
  if (const auto finished = finished_at.extract(id)) written = finished.mapped();
  reset_written_percent.Add(100 * written / zone.capacity);
}

// Its death is durable already.
bool ZonePool::Impl::ResetReleased() {
  const size_t most = ResetsToStart();
  if (table.totals().released == 0 || most == 0) return false;
  std::vector<ZoneId> zones;
  for (auto zone = table.dead().First(); zone && zones.size() < most;
       zone = table.dead().FirstFrom(ZoneId(zone->value() + 1))) {
    if (table.at(*zone).released) zones.push_back(*zone);
  }
  for (const ZoneId zone : zones) table.BeginReset(zone);
  SubmitAll(DeviceOp::kReset, zones);
  return true;
}

size_t ZonePool::Impl::ResetsToStart() const {
  // At the device: what waits for make_durable must not keep it waiting for a zone that only has to be reset.
  const size_t in_flight = jobs.size();
  return in_flight > kMostResets / 2 ? 0 : kMostResets - in_flight;
}

bool ZonePool::Impl::ResetDead() {
  const size_t most = ResetsToStart();
  if (!ResetIsDue() || most == 0) return false;
  std::vector<ZoneId> zones;
  for (auto zone = table.dead().First(); zone && zones.size() < most;
       zone = table.dead().FirstFrom(ZoneId(zone->value() + 1))) {
    // What is released waits for nobody, least of all for make_durable, which may wait for it.
    if (!table.at(*zone).released && IsToBeReset(*zone)) zones.push_back(*zone);
  }
  if (zones.empty()) return false;
  for (const ZoneId zone : zones) table.BeginReset(zone);
  if (MakeDurable()) {
    SubmitAll(DeviceOp::kReset, zones);
  } else {
    for (const ZoneId zone : zones) table.CancelReset(zone);
    changed.SignalAll();
  }
  return true;
}

bool ZonePool::Impl::FinishZones(Finishes which) {
  std::vector<ZoneId> data;
  std::vector<ZoneId> logs;
  for (;;) {
    auto zone = NextFailedFinish();
    if (!zone) zone = NextFinish(which);
    if (!zone) break;
    (table.at(*zone).use == ZoneUse::kLog ? logs : data).push_back(*zone);
    table.BeginFinish(*zone);
  }
  if (data.empty() && logs.empty()) return false;
  SubmitAll(DeviceOp::kFinish, data);
  if (logs.empty()) return true;
  undurable_finishes = static_cast<uint32_t>(logs.size());
  const bool durable = MakeDurable();
  undurable_finishes = 0;
  if (durable) {
    SubmitAll(DeviceOp::kFinish, logs);
  } else {
    for (const ZoneId zone : logs) table.CancelFinish(zone);
    changed.SignalAll();
  }
  return true;
}

// Tokens that the class should be able to take now.
uint32_t ZonePool::Impl::TokensWanted(BudgetClass c) const {
  const uint32_t waiting = waiting_for_token[static_cast<size_t>(c)];
  return c == BudgetClass::kData && data_token_wanted ? std::max(1U, waiting) : waiting;
}

bool ZonePool::Impl::IsShort(BudgetClass c) const { return active.Available(c) < TokensWanted(c); }

uint32_t ZonePool::Impl::FinishesWanted(Finishes which) const {
  if (which == Finishes::kForMetadata) {
    return Shortage(TokensWanted(BudgetClass::kMetadata), active.Available(BudgetClass::kMetadata));
  }
  uint32_t wanted = 0;
  for (const BudgetClass c : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
    wanted += Shortage(TokensWanted(c), active.Available(c));
  }
  // A reset is better, where nothing lives; but what cuts into the reserve of metadata must not wait for it.
  if (durable_error.ok()) wanted = Shortage(wanted, TokensToCome());
  return std::max(wanted, active.Overcommitted());
}

std::optional<ZoneId> ZonePool::Impl::DeadActive() const {
  for (const auto& [id, token] : active_tokens) {
    const ZoneRecord& zone = table.at(id);
    if (zone.use == ZoneUse::kData && zone.reusable_dead()) return id;
  }
  return std::nullopt;
}

// The fullest idle zone of a class that is short, or that gives back what others lack; where a reserve is cut into, rather
// one in which nothing lives.
std::optional<ZoneId> ZonePool::Impl::NextFinish(Finishes which) const {
  const uint32_t no_help = which == Finishes::kForMetadata ? undurable_finishes : 0;
  if (FinishesWanted(which) <= table.totals().finishing - no_help) return std::nullopt;
  if (which == Finishes::kForMetadata || active.Overcommitted() > 0) {
    if (const auto dead = DeadActive()) return dead;
  }
  std::optional<ZoneId> fullest;
  for (const ZoneUse use : {ZoneUse::kData, ZoneUse::kLog}) {
    const BudgetClass c = ClassOf(use);
    if (use == ZoneUse::kLog && which != Finishes::kAll) continue;
    if (!IsShort(c) && !active.Borrows(c)) continue;
    const auto zone = table.FullestIdle(use, CollectorsZone());
    if (zone && (!fullest || table.at(*zone).room() < table.at(*fullest).room())) fullest = zone;
  }
  return fullest;
}

std::optional<ZoneId> ZonePool::Impl::NextFailedFinish() const {
  for (const auto& [id, failures] : failed_active) {
    const ZoneRecord& zone = table.at(id);
    if (zone.phase == ZonePhase::kFailed && !zone.dead() && failures < kFinishTries) return id;
  }
  return std::nullopt;
}

bool ZonePool::Impl::MakeDurable() {
  Status status;
  if (options.make_durable) {
    const MutexUnlock unlock(mu);
    status = options.make_durable();
  }
  // Of one error after another the first is told.
  if (!status.ok() && durable_error.ok()) Latch(status);
  durable_error = status;
  if (status.ok()) return true;
  ++durable_failures;
  durable_again_ns = MonotonicNs() + kDurablePauseNs;
  return false;
}

void ZonePool::Impl::SubmitAll(DeviceOp op, std::span<const ZoneId> zones) {
  std::vector<Job*> started_jobs;
  for (const ZoneId zone : zones) {
    Job& job = jobs[zone];
    job.impl = this;
    job.zone = zone;
    job.request.op = op;
    job.request.offset = device.geometry().ZoneStart(zone);
    job.request.context = &job;
    job.request.done = [](DeviceRequest& request) {
      auto& done = *static_cast<Job*>(request.context);
      Impl& impl = *done.impl;
      const MutexLock lock(impl.mu);
      impl.completed.push_back(done.zone);
      impl.work.Signal();
      impl.changed.SignalAll();
    };
    started_jobs.push_back(&job);
  }
  const MutexUnlock unlock(mu);
  for (Job* job : started_jobs) device.Submit(job->request);
}

void ZonePool::Impl::HandleFailure(ZoneId zone, DeviceOp op, DeviceStatus status) {
  const Result<ZoneDescriptor> found = [&]() ISOZONE_REQUIRES(mu) {
    const MutexUnlock unlock(mu);
    return Report(zone);
  }();
  Latch(Status::IoError(fmt::format("{} of zone {} failed: {}; the zone is not written again", DeviceOpName(op),
                                    zone.value(), DeviceStatusName(status))));
  LeaveBroken(zone, found);
  if (op == DeviceOp::kFinish && active_tokens.contains(zone)) ++failed_active[zone];
  if (op != DeviceOp::kReset) return;
  ++stats.failed_resets;
  // What cannot be reset is not tried again.
  if (table.at(zone).phase == ZonePhase::kFailed) table.Retire(zone, /*offline=*/false);
}

void ZonePool::Impl::LeaveBroken(ZoneId zone, const Result<ZoneDescriptor>& found) {
  if (!found.ok()) {
    Latch(found.status());
    table.Fail(zone, table.at(zone).write_pointer);
    return;
  }
  const ZoneDescriptor& now = *found;
  if (now.state == ZoneState::kReadOnly || now.state == ZoneState::kOffline) {
    table.Retire(zone, now.state == ZoneState::kOffline);
  } else {
    table.Fail(zone, now.write_pointer);
  }
  if (!IsActive(now.state)) active_tokens.erase(zone);
}

Result<ZoneDescriptor> ZonePool::Impl::Report(ZoneId zone) const {
  ZoneDescriptor found;
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(zone, {&found, 1}));
  return found;
}

void ZonePool::Impl::Latch(const Status& status) {
  Log().warn("{}", status.message());
  if (first_error.ok()) first_error = status;
}

// --- ZonePool ---

Result<std::unique_ptr<ZonePool>> ZonePool::Create(ZonedDevice& device, Options options) {
  ISOZONE_RETURN_IF_ERROR(CheckDeviceFits(device.geometry()));
  ISOZONE_ASSIGN_OR_RETURN(auto policy, MakePlacementPolicy(options.policy));
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  return std::unique_ptr<ZonePool>(
      new ZonePool(std::make_unique<Impl>(device, std::move(options), std::move(policy), report)));
}

ZonePool::ZonePool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->owner = this; }
ZonePool::~ZonePool() = default;

Status ZonePool::AdoptMetadata(ZoneId zone) {
  if (zone.value() >= impl_->device.geometry().zone_count) {
    return Status::InvalidArgument(fmt::format("the device has no zone {}, which should hold metadata", zone.value()));
  }
  SetUse(zone, ZoneUse::kMetadata);
  const MutexLock lock(impl_->mu);
  if (impl_->table.at(zone).phase == ZonePhase::kEmpty) impl_->set_aside.insert(zone);
  return Status::Ok();
}

void ZonePool::SetDataClass(ZoneId zone, DataClass data) {
  const MutexLock lock(impl_->mu);
  impl_->table.SetDataClass(zone, data);
}

void ZonePool::ResetBeforeUse(ZoneId zone) {
  const MutexLock lock(impl_->mu);
  // As if a write had failed in it.
  if (impl_->table.at(zone).phase == ZonePhase::kEmpty) impl_->table.Fail(zone, 0);
}

void ZonePool::KeepAsItIs(ZoneId zone) {
  const MutexLock lock(impl_->mu);
  if (impl_->options.read_only) return;  // so it stays anyway, and may go on growing elsewhere
  const ZoneRecord& record = impl_->table.at(zone);
  if (record.phase == ZonePhase::kIdle) impl_->table.Fail(zone, record.write_pointer);
}

void ZonePool::SetUse(ZoneId zone, ZoneUse use) {
  const MutexLock lock(impl_->mu);
  impl_->table.SetUse(zone, use);
  if (impl_->active_tokens.erase(zone) != 0) impl_->active_tokens.emplace(zone, impl_->active.Adopt(ClassOf(use)));
}

void ZonePool::ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named) {
  const MutexLock lock(impl_->mu);
  for (uint32_t i = 0; i < impl_->table.size(); ++i) {
    const ZoneId zone(i);
    const ZoneRecord& record = impl_->table.at(zone);
    const bool given_up = record.kept && record.phase != ZonePhase::kEmpty;
    if ((record.dead() || given_up) && !is_named(zone)) impl_->table.Release(zone);
  }
}

void ZonePool::Start() { impl_->Start(); }
void ZonePool::Stop() { impl_->Stop(); }

void ZonePool::PaceLog(uint64_t bytes) {
  impl_->logged.fetch_add(bytes, std::memory_order_relaxed);
  if (impl_->is_tight.load(std::memory_order_relaxed)) impl_->Pace(bytes);
}

void ZonePool::PaceFlush(uint64_t bytes) {
  uint64_t unlogged = 0;
  {
    const MutexLock lock(impl_->mu);
    impl_->pace.NoteLogged(impl_->logged.exchange(0, std::memory_order_relaxed));
    unlogged = impl_->pace.TakeUnlogged(bytes);
  }
  if (unlogged > 0 && impl_->is_tight.load(std::memory_order_relaxed)) impl_->Pace(unlogged);
}

void ZonePool::NoteRefusal() {
  const MutexLock lock(impl_->mu);
  impl_->refused = true;
  impl_->work.Signal();
}

void ZonePool::AddLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(impl_->mu);
  impl_->table.AddLive(zone, bytes);
}

void ZonePool::RemoveLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(impl_->mu);
  impl_->table.RemoveLive(zone, bytes);
  if (impl_->table.at(zone).dead()) impl_->work.Signal();
}

void ZonePool::NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones) {
  impl_->deletion_delays.Deleted(lifetime, zones, MonotonicNs());
}

Result<ZoneLease> ZonePool::Acquire(const ZoneRequest& request) { return impl_->Acquire(request); }
std::optional<ZoneLease> ZonePool::TryAcquire(const ZoneRequest& request) { return impl_->TryAcquire(request); }
Result<ZoneLease> ZonePool::AcquireMetadata(std::span<const ZoneId> apart_from) {
  return impl_->AcquireMetadata(apart_from);
}
Result<ZoneId> ZonePool::SetAsideMetadata(std::span<const ZoneId> apart_from) {
  return impl_->SetAsideMetadata(apart_from);
}
Result<ZoneLease> ZonePool::ReopenMetadata(ZoneId zone) { return impl_->ReopenMetadata(zone); }

void ZonePool::ReleaseMetadata(ZoneId zone) {
  const MutexLock lock(impl_->mu);
  impl_->set_aside.erase(zone);
  impl_->table.Release(zone);
  impl_->WakeIfDue();
  impl_->changed.SignalAll();
}

bool ZonePool::ReserveForMetadata(uint32_t zones, MetadataClaim claim) {
  const MutexLock lock(impl_->mu);
  const uint32_t before = std::exchange(impl_->metadata_reserve, zones);
  const uint32_t coming = impl_->table.totals().resetting + impl_->table.totals().released;
  // What is kept for metadata alone is what collection may not take.
  const uint32_t kept = impl_->EmptyKept(claim == MetadataClaim::kNew ? BudgetClass::kData : BudgetClass::kGc);
  const bool fits = impl_->table.empty().size() + coming >= kept;
  if (zones > before && claim != MetadataClaim::kForced && !fits) {
    impl_->metadata_reserve = before;
    return false;
  }
  if (zones < before) impl_->changed.SignalAll();
  return true;
}

// --- Collecting ---

GcSpace ZonePool::Impl::SpaceForGc() const {
  const ZoneTotals& totals = table.totals();
  const uint64_t capacity = device.geometry().zone_capacity;
  GcSpace space;
  const uint32_t kept = EmptyKept(BudgetClass::kData);
  space.empty_zones = table.empty().size() - std::min(table.empty().size(), kept);
  const auto metadata = static_cast<uint32_t>(totals.metadata / capacity);
  space.zones = table.size() - std::min(table.size(), metadata + totals.unusable);
  space.capacity = space.zones * capacity;
  const uint32_t coming = table.empty().size() + totals.resetting;
  space.free = totals.free + totals.dead_in_idle + totals.resetting * capacity - std::min(coming, kept) * capacity;
  space.wanted = rounds.wanted();
  space.paced = paced > 0 && space_makers == collecting;
  return space;
}

// A dead zone for which somebody has asked already is about to be reset: who collected it again would gain nothing.
bool ZonePool::Impl::MayCollect(ZoneId zone) const {
  return IsCollectable(table.at(zone), !reset_at_once) && !(table.at(zone).dead() && asked_for.contains(zone));
}

GcCandidate ZonePool::Impl::AsCandidate(ZoneId id) const {
  const ZoneRecord& zone = table.at(id);
  GcCandidate c;
  c.zone = id;
  c.valid = zone.live;
  c.written = zone.write_pointer;
  c.capacity = zone.capacity;
  c.data = zone.data_class();
  c.group = table.groups().of(id);
  c.full = zone.phase != ZonePhase::kIdle;
  return c;
}

// After whatever may have changed what is free.
void ZonePool::Impl::NoteSpace() { is_tight.store(pace.PriceAt(FreeToUsers()) > 0, std::memory_order_relaxed); }

// Percent, beyond a few zones: where these are all that is left, compaction and collection need them.
double ZonePool::Impl::FreeToUsers() const {
  GcSpace space = SpaceForGc();
  space.free -= std::min(space.free, kZonesForMakers * device.geometry().zone_capacity);
  return space.free_percent();
}

// Waits until so many bytes are paid for, or nobody makes space, or it has taken too long.
void ZonePool::Impl::Pace(uint64_t bytes) {
  const MutexLock lock(mu);
  int64_t began_ns = 0;
  while (space_makers > 0 && !stopping && !pace.Pay(bytes, FreeToUsers())) {
    const int64_t now_ns = MonotonicNs();
    if (began_ns == 0) began_ns = now_ns;
    if (now_ns - began_ns >= WritePace::kLongestWaitNs) break;
    ++paced;
    if (space_makers == collecting && options.want_pace) options.want_pace();
    changed.WaitUntil(mu, began_ns + WritePace::kLongestWaitNs);
    --paced;
  }
  if (began_ns != 0) pace_ns.Add(static_cast<uint64_t>(MonotonicNs() - began_ns));
}

bool ZonePool::Impl::CollectorMayHelp(Waiter& waiter) const {
  return IsOfFiles(waiter.budget_class) && options.want_space && !durable_error.Is(StatusCode::kReadOnly) &&
         rounds.MayHelp(waiter.no_space);
}

GcSpace ZonePool::SpaceForGc() const {
  const MutexLock lock(impl_->mu);
  return impl_->SpaceForGc();
}

std::vector<GcCandidate> ZonePool::GcCandidates() const {
  const MutexLock lock(impl_->mu);
  std::vector<GcCandidate> candidates;
  for (uint32_t i = 0; i < impl_->table.size(); ++i) {
    if (!impl_->MayCollect(ZoneId(i))) continue;
    candidates.push_back(impl_->AsCandidate(ZoneId(i)));
  }
  return candidates;
}

std::optional<GcCandidate> ZonePool::BeginCollection(ZoneId zone) {
  const MutexLock lock(impl_->mu);
  if (!impl_->MayCollect(zone)) return std::nullopt;
  impl_->table.SetVictim(zone, true);
  return impl_->AsCandidate(zone);
}

void ZonePool::EndCollection(ZoneId zone) {
  const MutexLock lock(impl_->mu);
  impl_->table.SetVictim(zone, false);
  if (impl_->table.at(zone).dead()) impl_->asked_for.insert(zone);
  impl_->WakeIfDue();
  impl_->changed.SignalAll();
}

ZoneHeat ZonePool::Heat(ZoneId zone) const {
  const MutexLock lock(impl_->mu);
  return impl_->table.at(zone).heat;
}

uint64_t ZonePool::Live(ZoneId zone) const {
  const MutexLock lock(impl_->mu);
  return impl_->table.at(zone).live;
}

void ZonePool::BeginRound() {
  const MutexLock lock(impl_->mu);
  impl_->rounds.Begin();
}

void ZonePool::EndRound(bool gained) {
  const MutexLock lock(impl_->mu);
  impl_->rounds.End(gained);
  impl_->changed.SignalAll();
}

void ZonePool::AttachCollector(bool attached) {
  const MutexLock lock(impl_->mu);
  impl_->rounds.Attach(attached);
  impl_->changed.SignalAll();
}

void ZonePool::ResetAtOnce(bool at_once) {
  const MutexLock lock(impl_->mu);
  impl_->reset_at_once = at_once;
  impl_->WakeIfDue();
}

void ZonePool::ResetDeadNow() {
  const MutexLock lock(impl_->mu);
  impl_->AskForDead();
  impl_->work.Signal();
}

void ZonePool::ThrottleBelow(double percent) {
  const MutexLock lock(impl_->mu);
  impl_->pace.SetBelow(percent);
  impl_->NoteSpace();
}

SpaceInfo ZonePool::Space() const {
  const MutexLock lock(impl_->mu);
  const ZoneTotals& totals = impl_->table.totals();
  const uint32_t empty_zones = impl_->table.empty().size();
  SpaceInfo space;
  space.capacity = totals.capacity;
  space.live = totals.live;
  space.dead = totals.dead - totals.dead_in_idle;
  space.metadata = totals.metadata;
  space.reserved = std::min(empty_zones, impl_->EmptyKept(BudgetClass::kData)) * impl_->device.geometry().zone_capacity;
  space.free = totals.free + totals.dead_in_idle - space.reserved;
  space.zones = impl_->table.size();
  space.empty_zones = empty_zones;
  space.active_zones = impl_->active.used();
  space.full_zones = totals.full;
  space.unusable_zones = totals.unusable;
  return space;
}

std::vector<ZoneView> ZonePool::Zones() const {
  const uint32_t zone_count = impl_->device.geometry().zone_count;
  std::vector<ZoneDescriptor> report(zone_count);
  const Status reported = impl_->device.ReportZones(ZoneId(0), report);
  const MutexLock lock(impl_->mu);
  std::vector<ZoneView> views(zone_count);
  for (uint32_t i = 0; i < zone_count; ++i) {
    const ZoneRecord& zone = impl_->table.at(ZoneId(i));
    ZoneView& view = views[i];
    view.device = reported.ok() ? report[i] : AsDescriptor(ZoneId(i), zone);
    view.use = IsUsable(zone) ? zone.use : ZoneUse::kUnusable;
    view.live = zone.live;
    view.lifetime = zone.lifetime;
    view.heat = zone.heat;
    view.writing = zone.phase == ZonePhase::kLeased;
  }
  return views;
}

ZonePoolStats ZonePool::Stats() const {
  const MutexLock lock(impl_->mu);
  ZonePoolStats stats = impl_->stats;
  stats.wait_ns = impl_->wait_ns.Take();
  stats.pace_ns = impl_->pace_ns.Take();
  stats.reset_written_percent = impl_->reset_written_percent.Take();
  stats.deletion_delays_ns = impl_->deletion_delays.Take();
  return stats;
}

Status ZonePool::Settle() {
  const MutexLock lock(impl_->mu);
  // Where no thread runs, or nothing can be made durable, what is dead stays.
  impl_->AskForDead();
  while (impl_->started && !impl_->stopping && impl_->WorkIsDue()) {
    impl_->work.Signal();
    impl_->changed.Wait(impl_->mu);
  }
  return std::exchange(impl_->first_error, Status::Ok());
}

// --- ZoneLease ---

ZoneLease::ZoneLease(ZoneLease&& other) noexcept { *this = std::move(other); }

ZoneLease& ZoneLease::operator=(ZoneLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  zone_ = other.zone_;
  lease_id_ = other.lease_id_;
  write_pointer_ = other.write_pointer_;
  capacity_ = other.capacity_;
  return *this;
}

ZoneLease::~ZoneLease() { Release(); }

DeviceOffset ZoneLease::next() const {
  return DeviceOffset(pool_->impl_->device.geometry().ZoneStart(zone_).value() + write_pointer_);
}

bool ZoneLease::BeginWrite() {
  if (pool_ == nullptr) return false;
  if (pool_->impl_->BeginWrite(*this)) return true;
  pool_ = nullptr;
  return false;
}

void ZoneLease::EndWrite(uint64_t bytes) {
  pool_->impl_->EndWrite(*this, bytes);
  write_pointer_ += bytes;
}

void ZoneLease::EndFailedWrite(DeviceStatus status) {
  ZonePool::Impl& pool = *std::exchange(pool_, nullptr)->impl_;
  if (IsRefusal(status)) return pool.EndRefusedWrite(*this);
  WarnOfFailure(status);
  pool.EndFailedWrite(*this);
}

void ZoneLease::CompleteWrite(uint64_t bytes, DeviceStatus status) {
  if (status == DeviceStatus::kSuccess) {
    pool_->impl_->EndWrite(*this, bytes);
  } else if (IsRefusal(status)) {
    pool_->impl_->EndRefusedWrite(*this);
  } else {
    pool_->impl_->NoteFailedWrite(*this);
  }
}

void ZoneLease::Settle(uint64_t bytes, DeviceStatus status) {
  if (status == DeviceStatus::kSuccess) {
    write_pointer_ += bytes;
  } else {
    if (!IsRefusal(status)) WarnOfFailure(status);
    pool_ = nullptr;
  }
}

void ZoneLease::WarnOfFailure(DeviceStatus status) const {
  Log().warn("a write to zone {} at {} failed: {}; the zone is not written again before it is reset", zone_.value(),
             write_pointer_, DeviceStatusName(status));
}

void ZoneLease::Release() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->impl_->Release(*this);
}

}  // namespace isozone
