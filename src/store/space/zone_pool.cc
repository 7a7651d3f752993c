#include "store/space/zone_pool.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/space/zone_executor.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

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
  return std::unique_ptr<ZonePool>(
      new ZonePool(std::make_unique<ZoneExecutor>(device, std::move(options), std::move(policy), report)));
}

ZonePool::ZonePool(std::unique_ptr<ZoneExecutor> executor)
    : executor_(std::move(executor)),
      adopted_(*executor_),
      metadata_(*executor_),
      collected_(*executor_),
      statistics_(*executor_) {}
ZonePool::~ZonePool() = default;

Status ZonePool::Start() { return executor_->Start(); }
void ZonePool::Stop() { executor_->Stop(); }

void ZonePool::PaceLog(uint64_t bytes) {
  executor_->logged.fetch_add(bytes, std::memory_order_relaxed);
  if (executor_->is_tight.load(std::memory_order_relaxed)) executor_->Pace(bytes, ZoneWriter::kLog);
}

void ZonePool::PaceFlush(uint64_t bytes) {
  uint64_t unlogged = 0;
  {
    const MutexLock lock(executor_->mu);
    const uint64_t logged = executor_->logged.exchange(0, std::memory_order_relaxed);
    unlogged = executor_->allocator.collection().TakeUnlogged(bytes, logged);
  }
  if (unlogged > 0 && executor_->is_tight.load(std::memory_order_relaxed))
    executor_->Pace(unlogged, ZoneWriter::kFlush);
}

void ZonePool::NoteRefusal() {
  const MutexLock lock(executor_->mu);
  executor_->allocator.NoteRefusal();
  executor_->work.Signal();
}

void ZonePool::AddLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(executor_->mu);
  executor_->allocator.ledger().table.Edit(zone)->AddLive(bytes);
}

void ZonePool::RemoveLive(ZoneId zone, uint64_t bytes) {
  const MutexLock lock(executor_->mu);
  ZoneTable& table = executor_->allocator.ledger().table;
  table.Edit(zone)->RemoveLive(bytes);
  if (table.at(zone).dead()) executor_->work.Signal();
}

Result<ZoneLease> ZonePool::Acquire(const ZoneRequest& request) {
  const uint64_t capacity = executor_->device.geometry().zone_capacity;
  if (request.min_room > capacity) {
    return Status::InvalidArgument(
        fmt::format("a zone of {} bytes cannot take {} bytes at once", capacity, request.min_room));
  }
  const MutexLock lock(executor_->mu);
  ZoneAllocator::Inquiry inquiry(executor_->allocator, request);
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, executor_->Grant(inquiry));
  return executor_->LeaseOf(grant);
}

std::optional<ZoneLease> ZonePool::TryAcquire(const ZoneRequest& request) {
  const MutexLock lock(executor_->mu);
  executor_->Drain();
  if (!executor_->CheckWritable().ok()) return std::nullopt;
  const auto grant = executor_->allocator.Widen(request);
  if (!grant) return std::nullopt;
  return executor_->LeaseOf(*grant);
}

Status ZonePool::AwaitRoom(uint64_t bytes) {
  const MutexLock lock(executor_->mu);
  ZoneAllocator::Inquiry inquiry(executor_->allocator, ZoneAllocator::Inquiry::Room{bytes});
  return executor_->Grant(inquiry).status();
}

void ZonePool::Seal(uint64_t cohort) {
  const MutexLock lock(executor_->mu);
  executor_->allocator.Seal(cohort);
}

ZoneRoom ZonePool::RoomOf(const DataClass& data, uint64_t cohort) const {
  const MutexLock lock(executor_->mu);
  return executor_->allocator.RoomOf(data, cohort);
}

// --- State ---

SpaceInfo ZonePool::Space() const {
  const MutexLock lock(executor_->mu);
  return executor_->Space();
}

std::vector<ZoneView> ZonePool::Zones() const {
  const uint32_t zone_count = executor_->device.geometry().zone_count;
  std::vector<ZoneDescriptor> report(zone_count);
  const Status reported = executor_->device.ReportZones(ZoneId(0), report);
  const MutexLock lock(executor_->mu);
  std::vector<ZoneView> views(zone_count);
  for (uint32_t i = 0; i < zone_count; ++i) {
    const ZoneRecord& zone = executor_->allocator.ledger().table.at(ZoneId(i));
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
  const MutexLock lock(executor_->mu);
  ZonePoolStats stats;
  static_cast<AllocatorStats&>(stats) = executor_->allocator.ledger().stats;
  stats.waits = executor_->waits;
  stats.wait_ns = executor_->wait_ns.Take();
  stats.pace_ns = executor_->pace_ns.Take();
  stats.reset_written_percent = executor_->allocator.upkeep().reset_written_percent().Take();
  stats.deletion_delays_ns = executor_->deletion_delays.Take();
  return stats;
}

Status ZonePool::Settle() {
  const MutexLock lock(executor_->mu);
  // If no thread runs, or nothing can be made durable, dead zones stay as they are.
  executor_->allocator.upkeep().AskForDead();
  const auto goes_on = [this]() ISOZONE_REQUIRES(executor_->mu) {
    const ZoneLedger& ledger = executor_->allocator.ledger();
    return ledger.started && !ledger.stopping && executor_->allocator.upkeep().IsDue(executor_->clock.NowNs());
  };
  while (goes_on()) {
    executor_->work.Signal();
    executor_->changed.Wait(executor_->mu);
  }
  return std::exchange(executor_->first_error, Status::Ok());
}

}  // namespace isozone
