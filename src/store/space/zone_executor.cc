#include "store/space/zone_executor.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "store/io/patient_device.h"

namespace isozone {
namespace {

using Inquiry = ZoneAllocator::Inquiry;
using Answer = ZoneAllocator::Answer;

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

// What whoever waits waits for, where nothing can be given for `lack`.
WaitReason ReasonOf(Lack lack) {
  switch (lack) {
    case Lack::kOpenZone:
      return WaitReason::kOpenZone;
    case Lack::kActiveZone:
      return WaitReason::kActiveZone;
    case Lack::kSpace:
      return WaitReason::kReset;
  }
  return WaitReason::kReset;
}

}  // namespace

ZoneExecutor::ZoneExecutor(ZonedDevice& d, ZonePoolOptions o, std::unique_ptr<PlacementPolicy> policy,
                           std::span<const ZoneDescriptor> report)
    : device(d),
      options(std::move(o)),
      clock(*options.clock),
      allocator(report, AllocatorOptionsOf(device, options), std::move(policy)) {
  const MutexLock lock(mu);
  if (options.statistics != nullptr) ShowZones();
}

// --- Asking ---

Status ZoneExecutor::CheckWritable() const {
  if (options.read_only) return Status::ReadOnly("the file system is mounted read-only");
  if (allocator.ledger().stopping) return Status::Aborted("the file system is being unmounted");
  return Status::Ok();
}

Result<ZoneGrant> ZoneExecutor::Grant(Inquiry& inquiry) {
  WaitScope waiting(options.statistics, clock, inquiry.writer());
  for (;;) {
    Drain();
    ISOZONE_RETURN_IF_ERROR(CheckWritable());
    const int64_t now_ns = clock.NowNs();
    const Answer answer = allocator.Ask(inquiry, now_ns);
    switch (answer.action) {
      case Answer::Action::kGranted:
        if (inquiry.waits_since_ns) wait_ns.Add(static_cast<uint64_t>(now_ns - *inquiry.waits_since_ns));
        WakeIfDue();
        return answer.grant;
      case Answer::Action::kNothing:
        if (inquiry.confined()) return Status::NoSpace("no zone that is partly written has room for what is collected");
        return NothingLeft(answer.lack);
      case Answer::Action::kExecute:
        Execute(answer.commands);
        break;
      case Answer::Action::kRevoked:
        Announce();
        break;
      case Answer::Action::kCheckpoint:
        waiting.For(WaitReason::kCheckpoint);
        AwaitCheckpoint(inquiry);
        break;
      case Answer::Action::kCollector:
        waiting.For(WaitReason::kCollection);
        options.want_space();
        AwaitChange(inquiry, answer.until_ns);
        break;
      case Answer::Action::kWait:
        waiting.For(ReasonOf(answer.lack));
        AwaitChange(inquiry, answer.until_ns);
        break;
    }
  }
}

// Asks for a checkpoint, unless this inquiry has done so before, and waits for a moment.
void ZoneExecutor::AwaitCheckpoint(Inquiry& inquiry) {
  constexpr int64_t kMomentNs = 10 * kMillisecondNs;
  {
    const MutexUnlock unlock(mu);
    if (!inquiry.checkpoint) inquiry.checkpoint = options.want_checkpoint();
    inquiry.checkpoint_ended = !options.checkpoint_pending(*inquiry.checkpoint);
  }
  // If the checkpoint has ended, there is no wait: the inquiry looks once more at what it gave back.
  if (!inquiry.checkpoint_ended) AwaitChange(inquiry, clock.NowNs() + kMomentNs);
}

void ZoneExecutor::AwaitChange(Inquiry& inquiry, int64_t until_ns) {
  if (!inquiry.waits_since_ns) {
    inquiry.waits_since_ns = clock.NowNs();
    ++waits;
  }
  WakeIfDue();
  if (until_ns == ZoneAllocator::kNever) {
    changed.Wait(mu);
  } else {
    clock.WaitUntil(changed, mu, until_ns);
  }
}

Status ZoneExecutor::NothingLeft(Lack lack) const {
  const ZoneLedger& ledger = allocator.ledger();
  const Status& durable = ledger.durability.error;
  if (!durable.ok() && !ledger.table.dead().empty()) return durable.WithContext("no zone can be reset");
  const ActiveBudget& active = ledger.active;
  if (lack != Lack::kSpace) {
    return Status::NoSpace(fmt::format(
        "all {} active zones that the device allows are in use: {} for metadata, {} for logs, {} for garbage "
        "collection, {} for data, {} by others",
        device.geometry().max_active_zones, active.used(BudgetClass::kMetadata), active.used(BudgetClass::kLog),
        active.used(BudgetClass::kGc), active.used(BudgetClass::kData), active.withheld()));
  }
  const ZoneTotals& totals = ledger.table.totals();
  const uint32_t pinned = ledger.table.pinned().size();
  return Status::NoSpace(
      fmt::format("the device is full: {} bytes of files on {}, {} empty zones left, which are kept "
                  "for metadata, logs and garbage collection; delete files{}",
                  totals.live, totals.capacity, ledger.table.empty().size(),
                  pinned == 0 ? ""
                              : fmt::format(", or end readers: removed files that they have open hold {} zones, "
                                            "see isozone why",
                                            pinned)));
}

ZoneLease ZoneExecutor::LeaseOf(const ZoneGrant& grant) {
  ZoneLease lease;
  lease.executor_ = this;
  lease.grant_ = grant;
  return lease;
}

// --- Leases ---

bool ZoneExecutor::BeginWrite(const ZoneGrant& lease) {
  const MutexLock lock(mu);
  return allocator.BeginWrite(lease);
}

void ZoneExecutor::CompleteWrite(const ZoneGrant& lease, uint64_t bytes, DeviceStatus status) {
  const MutexLock lock(mu);
  if (status == DeviceStatus::kSuccess) {
    allocator.EndWrite(lease, bytes);
    NoteSpace();
    changed.SignalAll();
  } else if (IsForLack(status)) {
    allocator.EndRefusedWrite(lease, bytes);
    Announce();
  } else {
    // The lease stays, as if the write were still in flight, until Drain has looked at the zone.
    failed_writes_.push_back(lease.zone);
    work.Signal();
    changed.SignalAll();
  }
}

void ZoneExecutor::Release(const ZoneGrant& lease) {
  const MutexLock lock(mu);
  allocator.Release(lease);
  Announce();
}

// --- Background ---

Status ZoneExecutor::Start() {
  const MutexLock lock(mu);
  if (options.read_only || allocator.ledger().started) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("resets of zones", [this] { RunInBackground(); }));
  allocator.ledger().started = true;
  return Status::Ok();
}

void ZoneExecutor::Stop() {
  {
    const MutexLock lock(mu);
    allocator.ledger().stopping = true;
    work.Signal();
    changed.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  // Where no thread ran, commands that were started on behalf of a caller may still be in flight.
  const MutexLock lock(mu);
  while (!jobs_.empty()) {
    if (!Drain()) changed.Wait(mu);
  }
}

void ZoneExecutor::RunInBackground() {
  const MutexLock lock(mu);
  for (;;) {
    if (Drain()) continue;
    const int64_t now_ns = clock.NowNs();
    if (allocator.ForgetOthers(now_ns)) changed.SignalAll();
    const ZoneAllocator::Work next = allocator.NextWork(now_ns);
    if (next.count_others) {
      CountOthers();
    } else if (!next.ask_readers.empty()) {
      AskReaders(next.ask_readers);
    } else if (!next.commands.empty()) {
      Execute(next.commands);
    } else if (next.is_over) {
      break;
    } else {
      Rest(next.until_ns);
    }
  }
  allocator.ledger().started = false;
  changed.SignalAll();
}

void ZoneExecutor::Rest(int64_t until_ns) {
  if (!allocator.upkeep().IsDue(clock.NowNs())) changed.SignalAll();  // nothing is to come: waiters must ask again
  if (until_ns == ZoneAllocator::kNever) {
    work.Wait(mu);
  } else {
    clock.WaitUntil(work, mu, until_ns);
  }
}

// Tells the allocator how many zones are active on the device, which includes those of other users.
void ZoneExecutor::CountOthers() {
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  {
    const MutexUnlock unlock(mu);
    if (!device.ReportZones(ZoneId(0), report).ok()) return;
  }
  const auto active = std::ranges::count_if(report, [](const auto& zone) { return IsActive(zone.state); });
  allocator.NoteOthers(static_cast<uint32_t>(active), clock.NowNs());
}

void ZoneExecutor::WakeIfDue() {
  // A pool that stops waits for the last command, whichever thread learns that it has ended.
  if (allocator.ledger().stopping || allocator.upkeep().IsDue(clock.NowNs())) work.Signal();
}

void ZoneExecutor::Announce() {
  WakeIfDue();
  changed.SignalAll();
}

void ZoneExecutor::Execute(const std::vector<ZoneCommands>& commands) {
  for (const ZoneCommands& next : commands) {
    if (!next.after_durable) {
      Submit(next);
    } else if (MakeDurable()) {
      ZoneCommands ready = next;
      KeepPinned(ready);
      allocator.upkeep().Confirm(ready);
      Submit(ready);
    } else {
      allocator.upkeep().Cancel(next);
      changed.SignalAll();
    }
  }
}

bool ZoneExecutor::MakeDurable() {
  Status status;
  if (options.make_durable) {
    const MutexUnlock unlock(mu);
    status = options.make_durable();
  }
  // Of several errors in a row, the first is kept.
  if (!status.ok() && allocator.ledger().durability.error.ok()) Latch(status);
  allocator.NoteDurability(status, clock.NowNs());
  return status.ok();
}

void ZoneExecutor::KeepPinned(ZoneCommands& commands) {
  if (commands.op != DeviceOp::kReset || !options.pinned) return;
  // With those that are pinned already, so that whoever answers knows all that readers hold.
  const std::vector<ZoneId> held = allocator.ledger().table.pinned().All();
  std::vector<ZoneId> zones;
  std::ranges::merge(commands.zones, held, std::back_inserter(zones));
  AskReaders(std::move(zones));
  std::erase_if(commands.zones,
                [this](ZoneId zone) ISOZONE_REQUIRES(mu) { return allocator.ledger().table.at(zone).pinned; });
}

void ZoneExecutor::AskReaders(std::vector<ZoneId> zones) {
  const bool are_short = allocator.ledger().readers_in_the_way;
  std::vector<ZoneId> pinned;
  {
    const MutexUnlock unlock(mu);
    pinned = options.pinned(zones, are_short);
  }
  allocator.upkeep().NotePinned(zones, pinned, clock.NowNs());
  if (pinned.size() < zones.size()) changed.SignalAll();
}

void ZoneExecutor::Submit(const ZoneCommands& commands) {
  std::vector<Job*> started;
  for (const ZoneId zone : commands.zones) {
    Job& job = jobs_[zone];
    job.executor = this;
    job.zone = zone;
    job.request.op = commands.op;
    job.request.offset = device.geometry().ZoneStart(zone);
    job.request.context = &job;
    job.request.done = [](DeviceRequest& request) {
      auto& done = *static_cast<Job*>(request.context);
      ZoneExecutor& executor = *done.executor;
      const MutexLock lock(executor.mu);
      executor.completed_.push_back(done.zone);
      executor.work.Signal();
      executor.changed.SignalAll();
    };
    started.push_back(&job);
  }
  const MutexUnlock unlock(mu);
  for (Job* job : started) device.Submit(job->request);
}

bool ZoneExecutor::Drain() {
  if (completed_.empty() && failed_writes_.empty()) return false;
  while (!failed_writes_.empty()) {
    const ZoneId zone = failed_writes_.back();
    failed_writes_.pop_back();
    EndFailedWrite(zone);
  }
  while (!completed_.empty()) {
    const ZoneId zone = completed_.back();
    completed_.pop_back();
    EndJob(zone);
  }
  NoteSpace();
  Announce();
  return true;
}

void ZoneExecutor::EndFailedWrite(ZoneId zone) {
  Tell(PageEventKind::kFailure, zone, 0);
  const auto found = Report(zone);
  allocator.upkeep().NoteFailure(zone, DeviceOp::kWrite, found);
}

void ZoneExecutor::EndJob(ZoneId zone) {
  const auto job = jobs_.extract(zone);
  const DeviceOp op = job.mapped().request.op;
  const DeviceStatus status = job.mapped().request.status;
  const ZoneRecord& record = allocator.ledger().table.at(zone);
  const uint64_t written = record.finished_at.value_or(record.write_pointer);
  if (status != DeviceStatus::kSuccess) {
    Tell(PageEventKind::kFailure, zone, written);
    const auto found = Report(zone);
    Latch(Status::IoError(fmt::format("{} of zone {} failed: {}; the zone is not written again", DeviceOpName(op),
                                      zone.value(), DeviceStatusName(status))));
    allocator.upkeep().NoteFailure(zone, op, found);
  } else if (op == DeviceOp::kReset) {
    Tell(PageEventKind::kReset, zone, written);
    deletion_delays.Reset(zone, clock.NowNs());
    allocator.upkeep().NoteReset(zone);
  } else {
    Tell(PageEventKind::kFinish, zone, written);
    allocator.upkeep().NoteFinish(zone);
  }
}

std::optional<ZoneDescriptor> ZoneExecutor::Report(ZoneId zone) {
  ZoneDescriptor found;
  const Status status = [&]() ISOZONE_REQUIRES(mu) {
    const MutexUnlock unlock(mu);
    return device.ReportZones(zone, {&found, 1});
  }();
  if (status.ok()) return found;
  Latch(status);
  return std::nullopt;
}

void ZoneExecutor::Latch(const Status& status) {
  Log().warn("{}", status.message());
  if (options.statistics != nullptr) options.statistics->AddMessage(status.message(), clock.NowWallS());
  if (first_error.ok()) first_error = status;
}

// --- State ---

SpaceInfo ZoneExecutor::Space() const {
  const ZoneLedger& ledger = allocator.ledger();
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

void ZoneExecutor::ShowZones() {
  StatisticsWriter& statistics = *options.statistics;
  const uint32_t block = device.geometry().block_size;
  const uint64_t age_unit = statistics.header().age_unit;
  ZoneTable& table = allocator.ledger().table;
  const GroupIndex& groups = table.groups();
  table.SetWatch([&statistics, &groups, block, age_unit](ZoneId zone, const ZoneRecord& record) {
    statistics.SetZone(zone, PageZoneOf(record, static_cast<uint16_t>(groups.of(zone)), block, age_unit));
  });
}

void ZoneExecutor::Tell(PageEventKind kind, ZoneId zone, uint64_t written) const {
  if (options.statistics != nullptr) options.statistics->AddEvent(kind, zone, clock.NowNs(), written);
}

// --- Pace ---

// Waits until `bytes` are paid for, or nobody makes space any more, or the wait has become too long.
void ZoneExecutor::Pace(uint64_t bytes, ZoneWriter who) {
  const MutexLock lock(mu);
  WaitScope waiting(options.statistics, clock, who);
  ZoneCollection& collection = allocator.collection();
  int64_t began_ns = 0;
  while (!allocator.ledger().stopping && !collection.Pay(bytes)) {
    const int64_t now_ns = clock.NowNs();
    if (began_ns == 0) began_ns = now_ns;
    waiting.For(WaitReason::kPace);
    if (now_ns - began_ns >= WritePace::kLongestWaitNs) break;
    collection.BeginPaced();
    if (collection.CollectorIsAwaited() && options.want_pace) options.want_pace();
    clock.WaitUntil(changed, mu, began_ns + WritePace::kLongestWaitNs);
    collection.EndPaced();
  }
  if (began_ns != 0) pace_ns.Add(static_cast<uint64_t>(clock.NowNs() - began_ns));
}

}  // namespace isozone
