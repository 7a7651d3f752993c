#include "store/space/zone_pool.h"

#include <utility>

#include <fmt/format.h>

#include "store/io/patient_device.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

using Inquiry = ZoneAllocator::Inquiry;

AllocatorOptions AllocatorOptionsOf(const ZonedDevice& device, const ZonePoolOptions& options) {
  AllocatorOptions allocator;
  allocator.geometry = device.geometry();
  allocator.groups = options.groups;
  allocator.isolation = options.isolation;
  allocator.keep_away = options.keep_away;
  allocator.metadata_copies = options.metadata_copies;
  allocator.asks_for_checkpoints = static_cast<bool>(options.want_checkpoint);
  allocator.asks_for_space = static_cast<bool>(options.want_space);
  allocator.patience_ns = PatientDevice::kPatienceNs;
  return allocator;
}

bool IsUsable(const ZoneRecord& zone) { return zone.phase != ZonePhase::kRetired && zone.phase != ZonePhase::kOffline; }

// Returns what the device would report of the zone. It is used where the device does not answer.
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

Result<std::unique_ptr<ZonePool>> ZonePool::Create(ZonedDevice& device, ZonePoolOptions options) {
  ISOZONE_RETURN_IF_ERROR(CheckDeviceFits(device.geometry()));
  ISOZONE_ASSIGN_OR_RETURN(auto policy, MakePlacementPolicy(options.policy));
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  return std::unique_ptr<ZonePool>(new ZonePool(device, std::move(options), std::move(policy), report));
}

ZonePool::ZonePool(ZonedDevice& device, ZonePoolOptions options, std::unique_ptr<PlacementPolicy> policy,
                   std::span<const ZoneDescriptor> report)
    : device_(device),
      options_(std::move(options)),
      clock_(*options_.clock),
      allocator_(report, AllocatorOptionsOf(device_, options_), std::move(policy)) {
  const MutexLock lock(mu_);
  if (options_.statistics != nullptr) ShowZones();
}

// --- At mount ---

Status ZonePool::AdoptMetadata(ZoneId zone) {
  if (zone.value() >= device_.geometry().zone_count) {
    return Status::InvalidArgument(fmt::format("the device has no zone {}, which should hold metadata", zone.value()));
  }
  const MutexLock lock(mu_);
  allocator_.ledger().Adopt(zone, ZoneUse::kMetadata);
  return Status::Ok();
}

void ZonePool::Adopt(ZoneId zone, const AdoptedZone& adopted) {
  const MutexLock lock(mu_);
  allocator_.ledger().Adopt(zone, adopted.use);
  ZoneTable::Change change = table().Edit(zone);
  change->data = adopted.data;
  change->has_data = adopted.has_data;
  change->AddLive(adopted.live);
}

void ZonePool::ResetBeforeUse(ZoneId zone) {
  const MutexLock lock(mu_);
  // A zone in which a write has failed is in this state, too: it is reset before it is written again.
  if (at(zone).phase == ZonePhase::kEmpty) table().Edit(zone)->Fail(0);
}

void ZonePool::KeepAsItIs(ZoneId zone) {
  const MutexLock lock(mu_);
  if (options_.read_only) return;  // nothing is written here, but another process may append
  if (at(zone).phase == ZonePhase::kIdle) table().Edit(zone)->Fail(at(zone).write_pointer);
}

void ZonePool::ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named) {
  const MutexLock lock(mu_);
  for (uint32_t i = 0; i < table().size(); ++i) {
    const ZoneId zone(i);
    const bool given_up = at(zone).kept && at(zone).phase != ZonePhase::kEmpty;
    if ((at(zone).dead() || given_up) && !is_named(zone)) table().Edit(zone)->Release();
  }
}

// --- Space held by files ---

void ZonePool::AddLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(mu_);
  table().Edit(zone)->AddLive(bytes);
}

void ZonePool::RemoveLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(mu_);
  table().Edit(zone)->RemoveLive(bytes);
  if (at(zone).dead()) work_.Signal();
}

void ZonePool::NoteHasData(ZoneId zone) {
  const MutexLock lock(mu_);
  table().Edit(zone)->has_data = true;
}

void ZonePool::NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones) {
  histograms_.deletion_delays.Deleted(lifetime, zones, clock_.NowNs());
}

// --- Writing files ---

Result<ZoneLease> ZonePool::Lease(Inquiry&& inquiry) {
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, Grant(std::move(inquiry)));
  return ZoneLease(*this, grant);
}

Result<ZoneLease> ZonePool::Acquire(const ZoneRequest& request) {
  const uint64_t capacity = device_.geometry().zone_capacity;
  if (request.min_room > capacity) {
    return Status::InvalidArgument(
        fmt::format("a zone of {} bytes cannot take {} bytes at once", capacity, request.min_room));
  }
  const MutexLock lock(mu_);
  return Lease(Inquiry(allocator_, request));
}

std::optional<ZoneLease> ZonePool::TryAcquire(const ZoneRequest& request) {
  const MutexLock lock(mu_);
  Drain();
  if (!CheckWritable().ok()) return std::nullopt;
  const auto grant = allocator_.Widen(request);
  if (!grant) return std::nullopt;
  return ZoneLease(*this, *grant);
}

Status ZonePool::AwaitRoom(uint64_t bytes) {
  const MutexLock lock(mu_);
  return Grant(Inquiry(allocator_, Inquiry::Room{bytes})).status();
}

void ZonePool::Seal(uint64_t cohort) {
  const MutexLock lock(mu_);
  allocator_.Seal(cohort);
}

void ZonePool::NoteRefusal() {
  const MutexLock lock(mu_);
  allocator_.NoteRefusal();
  work_.Signal();
}

void ZonePool::CompleteWrite(const ZoneGrant& lease, uint64_t bytes, uint64_t live, DeviceStatus status) {
  const MutexLock lock(mu_);
  if (status == DeviceStatus::kSuccess) {
    allocator_.EndWrite(lease, bytes, live);
    NoteSpace();
    changed_.SignalAll();
  } else if (IsForLack(status)) {
    allocator_.EndRefusedWrite(lease, bytes);
    Announce();
  } else {
    // The lease stays, as if the write were still in flight, until Drain has looked at the zone.
    failed_writes_.push_back(lease.zone);
    work_.Signal();
    changed_.SignalAll();
  }
}

void ZonePool::AwaitEnd(const ZoneGrant& lease) {
  const MutexLock lock(mu_);
  // Another thread may already be asking the device about the zone, for which it gives the mutex up.
  while (!lease.state->ended()) {
    if (!Drain()) changed_.Wait(mu_);
  }
}

void ZonePool::Release(const ZoneGrant& lease) {
  const MutexLock lock(mu_);
  allocator_.Release(lease);
  Announce();
}

// --- Writing metadata ---

Result<ZoneLease> ZonePool::AcquireForMetadata(std::span<const ZoneId> apart_from) {
  const MutexLock lock(mu_);
  return Lease(Inquiry(allocator_, Inquiry::Purpose::kBegin, apart_from));
}

Result<ZoneId> ZonePool::SetAside(std::span<const ZoneId> apart_from) {
  const MutexLock lock(mu_);
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, Grant(Inquiry(allocator_, Inquiry::Purpose::kSetAside, apart_from)));
  return grant.zone;
}

Result<ZoneLease> ZonePool::Reopen(ZoneId zone) {
  const MutexLock lock(mu_);
  const ZoneRecord& record = at(zone);
  const bool set_aside = record.phase == ZonePhase::kEmpty && record.set_aside;
  const bool reopenable = record.phase == ZonePhase::kIdle || set_aside;
  if (record.use != ZoneUse::kMetadata || !reopenable || record.released) {
    return Status::InvalidArgument(fmt::format("zone {} ({}) cannot be written on: it is full, leased or broken",
                                               zone.value(), ZoneUseName(record.use)));
  }
  return Lease(Inquiry(allocator_, zone));
}

void ZonePool::ReleaseMetadata(ZoneId zone) {
  const MutexLock lock(mu_);
  allocator_.ReleaseMetadata(zone);
  Announce();
}

bool ZonePool::ReserveForMetadata(uint32_t zones, MetadataClaim claim) {
  const MutexLock lock(mu_);
  const bool fits = allocator_.ReserveForMetadata(zones, claim);
  changed_.SignalAll();  // where the reserve has become smaller, waiting writers may have a zone
  return fits;
}

// --- For the collector ---

GcSpace ZonePool::Look() const {
  const MutexLock lock(mu_);
  return allocator_.collection().Space();
}

std::vector<GcCandidate> ZonePool::Candidates() const {
  const MutexLock lock(mu_);
  return allocator_.collection().Candidates();
}

std::optional<GcCandidate> ZonePool::Hold(ZoneId zone) {
  const MutexLock lock(mu_);
  return allocator_.collection().Begin(zone);
}

void ZonePool::LetGo(ZoneId zone) {
  const MutexLock lock(mu_);
  allocator_.collection().End(zone);
  Announce();
}

void ZonePool::Attach(bool attached) {
  const MutexLock lock(mu_);
  allocator_.ledger().rounds.Attach(attached);
  changed_.SignalAll();
}

void ZonePool::BeginRound() {
  const MutexLock lock(mu_);
  allocator_.ledger().rounds.Begin();
}

void ZonePool::EndRound(bool gained) {
  const MutexLock lock(mu_);
  allocator_.ledger().rounds.End(gained);
  changed_.SignalAll();
}

void ZonePool::ResetAtOnce(bool at_once) {
  const MutexLock lock(mu_);
  allocator_.ledger().reset_at_once = at_once;
  WakeIfDue();
}

void ZonePool::ResetDead() {
  const MutexLock lock(mu_);
  allocator_.upkeep().AskForDead();
  work_.Signal();
}

void ZonePool::ThrottleBelow(ThrottleRule rule) {
  const MutexLock lock(mu_);
  allocator_.collection().ThrottleBelow(std::move(rule));
  NoteSpace();
}

// --- Pace ---

void ZonePool::PaceLog(uint64_t bytes) {
  logged_.fetch_add(bytes, std::memory_order_relaxed);
  if (is_tight_.load(std::memory_order_relaxed)) Pace(bytes, ZoneWriter::kLog);
}

void ZonePool::PaceFlush(uint64_t bytes) {
  uint64_t unlogged = 0;
  {
    const MutexLock lock(mu_);
    unlogged = allocator_.collection().TakeUnlogged(bytes, logged_.exchange(0, std::memory_order_relaxed));
  }
  if (unlogged > 0 && is_tight_.load(std::memory_order_relaxed)) Pace(unlogged, ZoneWriter::kFlush);
}

// Waits until `bytes` are paid for, or nobody makes space any more, or the wait has become too long.
void ZonePool::Pace(uint64_t bytes, ZoneWriter who) {
  const MutexLock lock(mu_);
  WaitScope waiting(options_.statistics, clock_, who);
  ZoneCollection& collection = allocator_.collection();
  int64_t began_ns = 0;
  while (!allocator_.ledger().stopping && !collection.Pay(bytes)) {
    const int64_t now_ns = clock_.NowNs();
    if (began_ns == 0) began_ns = now_ns;
    waiting.For(WaitReason::kPace);
    if (now_ns - began_ns >= WritePace::kLongestWaitNs) break;
    collection.BeginPaced();
    if (collection.CollectorIsAwaited() && options_.want_pace) options_.want_pace();
    clock_.WaitUntil(changed_, mu_, began_ns + WritePace::kLongestWaitNs);
    collection.EndPaced();
  }
  if (began_ns != 0) histograms_.pace_ns.Add(static_cast<uint64_t>(clock_.NowNs() - began_ns));
}

// --- State ---

SpaceInfo ZonePool::Space() const {
  const MutexLock lock(mu_);
  return SpaceNow();
}

SpaceInfo ZonePool::SpaceNow() const {
  const ZoneLedger& ledger = allocator_.ledger();
  const ZoneTotals& totals = ledger.table.totals();
  SpaceInfo space;
  space.capacity = totals.capacity;
  space.live = totals.live;
  space.dead = totals.dead - totals.dead_in_idle;
  space.held_by_readers = totals.pinned;
  space.metadata = totals.metadata;
  space.reserved = ledger.ReservedBytes();
  space.free = ledger.Free();
  space.free_for_data = ledger.FreeForData();
  space.zones = ledger.table.size();
  space.empty_zones = ledger.table.empty().size();
  space.active_zones = ledger.active.used();
  space.full_zones = totals.full;
  space.unusable_zones = totals.unusable;
  return space;
}

ZoneRoom ZonePool::RoomOf(const DataClass& data, uint64_t cohort) const {
  const MutexLock lock(mu_);
  return allocator_.RoomOf(data, cohort);
}

uint64_t ZonePool::Live(ZoneId zone) const {
  const MutexLock lock(mu_);
  return at(zone).live;
}

ZoneHeat ZonePool::Heat(ZoneId zone) const {
  const MutexLock lock(mu_);
  return at(zone).data.heat;
}

std::vector<ZoneView> ZonePool::Zones() const {
  const uint32_t zone_count = device_.geometry().zone_count;
  std::vector<ZoneDescriptor> report(zone_count);
  const Status reported = device_.ReportZones(ZoneId(0), report);
  const MutexLock lock(mu_);
  std::vector<ZoneView> views(zone_count);
  for (uint32_t i = 0; i < zone_count; ++i) {
    const ZoneRecord& zone = at(ZoneId(i));
    ZoneView& view = views[i];
    view.device = reported.ok() ? report[i] : AsDescriptor(ZoneId(i), zone);
    view.use = IsUsable(zone) ? zone.use : ZoneUse::kUnusable;
    view.live = zone.live;
    view.lifetime = zone.data.lifetime;
    view.level = zone.data.level;
    view.heat = zone.data.heat;
    view.writing = zone.phase == ZonePhase::kLeased;
  }
  return views;
}

ZonePoolStats ZonePool::Stats() const {
  const MutexLock lock(mu_);
  const ActiveBudget& active = allocator_.ledger().active;
  return {allocator_.ledger().stats,
          waits_,
          SpaceNow(),
          {active.used(BudgetClass::kMetadata), active.used(BudgetClass::kLog), active.used(BudgetClass::kGc),
           active.used(BudgetClass::kData), active.withheld()}};
}

Status ZonePool::Settle() {
  const MutexLock lock(mu_);
  // If no thread runs, or nothing can be made durable, dead zones stay as they are.
  allocator_.upkeep().AskForDead();
  const auto goes_on = [this]() ISOZONE_REQUIRES(mu_) {
    const ZoneLedger& ledger = allocator_.ledger();
    return ledger.started && !ledger.stopping && allocator_.upkeep().IsDue(clock_.NowNs());
  };
  while (goes_on()) {
    work_.Signal();
    changed_.Wait(mu_);
  }
  return std::exchange(first_error_, Status::Ok());
}

void ZonePool::ShowZones() {
  StatisticsWriter& statistics = *options_.statistics;
  const uint32_t block = device_.geometry().block_size;
  const uint64_t age_unit = statistics.header().age_unit;
  const GroupIndex& groups = table().groups();
  table().SetWatch([&statistics, &groups, block, age_unit](ZoneId zone, const ZoneRecord& record) {
    statistics.SetZone(zone, PageZoneOf(record, static_cast<uint16_t>(groups.of(zone)), block, age_unit));
  });
}

void ZonePool::Tell(PageEventKind kind, ZoneId zone, uint64_t written) const {
  if (options_.statistics != nullptr) options_.statistics->AddEvent(kind, zone, clock_.NowNs(), written);
}

}  // namespace isozone
