// Asks the allocator and executes its answers: on the threads of those who ask, and in the background.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "store/space/zone_pool.h"

namespace isozone {
namespace {

using Inquiry = ZoneAllocator::Inquiry;
using Answer = ZoneAllocator::Answer;

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

// --- Asking ---

Status ZonePool::CheckWritable() const {
  if (options_.read_only) return Status::ReadOnly("the file system is mounted read-only");
  if (allocator_.ledger().stopping) return Status::Aborted("the file system is being unmounted");
  return Status::Ok();
}

Result<ZoneGrant> ZonePool::Grant(Inquiry&& inquiry) {
  WaitScope waiting(options_.statistics, clock_, inquiry.writer());
  for (;;) {
    Drain();
    ISOZONE_RETURN_IF_ERROR(CheckWritable());
    const int64_t now_ns = clock_.NowNs();
    const Answer answer = allocator_.Ask(inquiry, now_ns);
    switch (answer.action) {
      case Answer::Action::kGranted:
        if (inquiry.waits_since_ns) histograms_.wait_ns.Add(static_cast<uint64_t>(now_ns - *inquiry.waits_since_ns));
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
        options_.want_space();
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
void ZonePool::AwaitCheckpoint(Inquiry& inquiry) {
  constexpr int64_t kMomentNs = 10 * kMillisecondNs;
  {
    const MutexUnlock unlock(mu_);
    if (!inquiry.checkpoint) inquiry.checkpoint = options_.want_checkpoint();
    inquiry.checkpoint_ended = !options_.checkpoint_pending(*inquiry.checkpoint);
  }
  // If the checkpoint has ended, there is no wait: the inquiry looks once more at what it gave back.
  if (!inquiry.checkpoint_ended) AwaitChange(inquiry, clock_.NowNs() + kMomentNs);
}

void ZonePool::AwaitChange(Inquiry& inquiry, int64_t until_ns) {
  if (!inquiry.waits_since_ns) {
    inquiry.waits_since_ns = clock_.NowNs();
    ++waits_;
  }
  WakeIfDue();
  // The thread may sleep for longer than until the metadata may be made durable again, for which this may wait.
  const Durability& durability = allocator_.ledger().durability;
  if (!durability.is_due(clock_.NowNs())) until_ns = std::min(until_ns, durability.next_try_ns);
  if (until_ns == ZoneAllocator::kNever) {
    changed_.Wait(mu_);
  } else {
    clock_.WaitUntil(changed_, mu_, until_ns);
  }
}

Status ZonePool::NothingLeft(Lack lack) const {
  const ZoneLedger& ledger = allocator_.ledger();
  const Status& durable = ledger.durability.error;
  if (!durable.ok() && !ledger.table.dead().empty()) return durable.WithContext("no zone can be reset");
  const ActiveBudget& active = ledger.active;
  if (lack != Lack::kSpace) {
    return Status::NoSpace(fmt::format(
        "all {} active zones that the device allows are in use: {} for metadata, {} for logs, {} for GC, "
        "{} for data, {} by others",
        device_.geometry().max_active_zones, active.used(BudgetClass::kMetadata), active.used(BudgetClass::kLog),
        active.used(BudgetClass::kGc), active.used(BudgetClass::kData), active.withheld()));
  }
  const ZoneTotals& totals = ledger.table.totals();
  const uint32_t pinned = ledger.table.pinned().size();
  return Status::NoSpace(
      fmt::format("the device is full: {} bytes of files on {}, {} empty zones left, which are reserved "
                  "for metadata, logs and GC; delete files{}",
                  totals.live, totals.capacity, ledger.table.empty().size(),
                  pinned == 0 ? ""
                              : fmt::format(", or end readers: removed files that they have open hold {} zones, "
                                            "see isozone why",
                                            pinned)));
}

// --- Background ---

Status ZonePool::Start() {
  const MutexLock lock(mu_);
  if (options_.read_only || allocator_.ledger().started) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("resets of zones", [this] { RunInBackground(); }));
  allocator_.ledger().started = true;
  return Status::Ok();
}

void ZonePool::Stop() {
  {
    const MutexLock lock(mu_);
    allocator_.ledger().stopping = true;
    work_.Signal();
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  // Where no thread ran, commands that were started on behalf of a caller may still be in flight.
  const MutexLock lock(mu_);
  while (!jobs_.empty()) {
    if (!Drain()) changed_.Wait(mu_);
  }
}

void ZonePool::RunInBackground() {
  const MutexLock lock(mu_);
  for (;;) {
    if (Drain()) continue;
    const int64_t now_ns = clock_.NowNs();
    if (allocator_.ForgetOthers(now_ns)) changed_.SignalAll();
    const ZoneAllocator::Work next = allocator_.NextWork(now_ns);
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
  allocator_.ledger().started = false;
  changed_.SignalAll();
}

void ZonePool::Rest(int64_t until_ns) {
  if (!allocator_.upkeep().IsDue(clock_.NowNs())) changed_.SignalAll();  // nothing is to come: waiters must ask again
  if (until_ns == ZoneAllocator::kNever) {
    work_.Wait(mu_);
  } else {
    clock_.WaitUntil(work_, mu_, until_ns);
  }
}

// Tells the allocator how many zones are active on the device, which includes those of other users.
void ZonePool::CountOthers() {
  std::vector<ZoneDescriptor> report(device_.geometry().zone_count);
  {
    const MutexUnlock unlock(mu_);
    if (!device_.ReportZones(ZoneId(0), report).ok()) return;
  }
  const auto active = std::ranges::count_if(report, [](const auto& zone) { return IsActive(zone.state); });
  allocator_.NoteOthers(static_cast<uint32_t>(active), clock_.NowNs());
}

void ZonePool::WakeIfDue() {
  // A pool that stops waits for the last command, whichever thread learns that it has ended.
  if (allocator_.ledger().stopping || allocator_.upkeep().IsDue(clock_.NowNs())) work_.Signal();
}

void ZonePool::Announce() {
  WakeIfDue();
  changed_.SignalAll();
}

void ZonePool::Execute(const std::vector<ZoneCommands>& commands) {
  for (const ZoneCommands& next : commands) {
    if (!next.after_durable) {
      Submit(next);
    } else if (MakeDurable()) {
      ZoneCommands ready = next;
      KeepPinned(ready);
      allocator_.upkeep().Confirm(ready);
      Submit(ready);
    } else {
      allocator_.upkeep().Cancel(next);
      changed_.SignalAll();
    }
  }
}

bool ZonePool::MakeDurable() {
  Status status;
  if (options_.make_durable) {
    const MutexUnlock unlock(mu_);
    status = options_.make_durable();
  }
  // Of several errors in a row, the first is kept.
  if (!status.ok() && allocator_.ledger().durability.error.ok()) Latch(status);
  allocator_.NoteDurability(status, clock_.NowNs());
  return status.ok();
}

void ZonePool::KeepPinned(ZoneCommands& commands) {
  if (commands.op != DeviceOp::kReset || !options_.pinned) return;
  // With those that are pinned already, so that whoever answers knows all that readers hold.
  const std::vector<ZoneId> held = table().pinned().All();
  std::vector<ZoneId> zones;
  std::ranges::merge(commands.zones, held, std::back_inserter(zones));
  AskReaders(std::move(zones));
  std::erase_if(commands.zones, [this](ZoneId zone) ISOZONE_REQUIRES(mu_) { return at(zone).pinned; });
}

void ZonePool::AskReaders(std::vector<ZoneId> zones) {
  const bool are_short = allocator_.ledger().readers_in_the_way;
  std::vector<ZoneId> pinned;
  {
    const MutexUnlock unlock(mu_);
    pinned = options_.pinned(zones, are_short);
  }
  allocator_.upkeep().NotePinned(zones, pinned, clock_.NowNs());
  if (pinned.size() < zones.size()) changed_.SignalAll();
}

void ZonePool::Submit(const ZoneCommands& commands) {
  std::vector<Job*> started;
  for (const ZoneId zone : commands.zones) {
    Job& job = jobs_[zone];
    job.pool = this;
    job.zone = zone;
    job.request.op = commands.op;
    job.request.offset = device_.geometry().ZoneStart(zone);
    job.request.context = &job;
    job.request.done = [](DeviceRequest& request) {
      auto& done = *static_cast<Job*>(request.context);
      ZonePool& pool = *done.pool;
      const MutexLock lock(pool.mu_);
      pool.completed_.push_back(done.zone);
      pool.work_.Signal();
      pool.changed_.SignalAll();
    };
    started.push_back(&job);
  }
  const MutexUnlock unlock(mu_);
  for (Job* job : started) device_.Submit(job->request);
}

bool ZonePool::Drain() {
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

void ZonePool::EndFailedWrite(ZoneId zone) {
  Tell(PageEventKind::kFailure, zone, 0);
  const auto found = Report(zone);
  allocator_.upkeep().NoteFailure(zone, DeviceOp::kWrite, found);
}

void ZonePool::EndJob(ZoneId zone) {
  const auto job = jobs_.extract(zone);
  const DeviceOp op = job.mapped().request.op;
  const DeviceStatus status = job.mapped().request.status;
  const ZoneRecord& record = at(zone);
  const uint64_t written = record.finished_at.value_or(record.write_pointer);
  if (status != DeviceStatus::kSuccess) {
    Tell(PageEventKind::kFailure, zone, written);
    const auto found = Report(zone);
    Latch(Status::IoError(fmt::format("{} of zone {} failed: {}; the zone is not written again", DeviceOpName(op),
                                      zone.value(), DeviceStatusName(status))));
    allocator_.upkeep().NoteFailure(zone, op, found);
  } else if (op == DeviceOp::kReset) {
    Tell(PageEventKind::kReset, zone, written);
    histograms_.deletion_delays.Reset(zone, clock_.NowNs());
    allocator_.upkeep().NoteReset(zone);
  } else {
    Tell(PageEventKind::kFinish, zone, written);
    allocator_.upkeep().NoteFinish(zone);
  }
}

std::optional<ZoneDescriptor> ZonePool::Report(ZoneId zone) {
  ZoneDescriptor found;
  const Status status = [&]() ISOZONE_REQUIRES(mu_) {
    const MutexUnlock unlock(mu_);
    return device_.ReportZones(zone, {&found, 1});
  }();
  if (status.ok()) return found;
  Latch(status);
  return std::nullopt;
}

void ZonePool::Latch(const Status& status) {
  Log().warn("{}", status.message());
  if (options_.statistics != nullptr) options_.statistics->AddMessage(status.message(), clock_.NowWallS());
  if (first_error_.ok()) first_error_ = status;
}

}  // namespace isozone
