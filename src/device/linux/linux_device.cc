#include "device/linux/linux_device.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "device/linux/kernel_errors.h"
#include "device/request_check.h"

namespace isozone {
namespace {

constexpr int kReportAttempts = 3;
constexpr std::chrono::milliseconds kReportPause(20);
constexpr int kMostResends = 8;
constexpr int kMostWriteResends = 2;
constexpr int kRelearnAttempts = 8;  // reports of a zone, each of which a change of it may overtake

ZoneCommand CommandOf(DeviceOp op) {
  switch (op) {
    case DeviceOp::kReset:
      return ZoneCommand::kReset;
    case DeviceOp::kFinish:
      return ZoneCommand::kFinish;
    case DeviceOp::kOpen:
      return ZoneCommand::kOpen;
    default:
      return ZoneCommand::kClose;
  }
}

// Whether the host has ended a transfer without a fault of the device.
bool IsInterrupted(int64_t result) { return result == -EAGAIN || result == -EINTR || result == -ECANCELED; }

bool IsWrite(DeviceOp op) { return op == DeviceOp::kWrite || op == DeviceOp::kAppend; }
bool Changes(DeviceOp op) { return op != DeviceOp::kRead && op != DeviceOp::kFlush; }

// What the kernel reports: 0 or the last error. The kernel repeats a read or write that was lost on its way to a disk,
// but not a report, which changes nothing and is repeated here. Blocks.
int ReportPatiently(const BlockKernel& kernel, uint64_t position, std::span<KernelZone> out) {
  int error = 0;
  for (int attempt = 0; attempt < kReportAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kReportPause);
    error = kernel.ReportZones(position, out);
    if (error == 0 || IsGone(error)) break;
  }
  return error;
}

Result<std::vector<KernelZone>> AllZones(const BlockKernel& kernel, const QueueFacts& facts) {
  if (facts.zone_size == 0) return Status::NotSupported("the kernel does not tell the size of its zones");
  std::vector<KernelZone> zones((facts.size + facts.zone_size - 1) / facts.zone_size);
  const int error = ReportPatiently(kernel, 0, zones);
  if (error != 0) return Status::FromErrno(error, "the kernel does not report the zones");
  return zones;
}

}  // namespace

Result<std::unique_ptr<LinuxDevice>> LinuxDevice::Create(std::string name, OpenMode mode,
                                                         std::unique_ptr<BlockKernel> kernel, const QueueFacts& facts) {
  const auto zones = AllZones(*kernel, facts);
  if (!zones.ok()) return zones.status().WithContext(name);
  auto layout = ZoneLayout::Of(facts, *zones);
  if (!layout.ok()) return layout.status().WithContext(name);
  std::unique_ptr<LinuxDevice> device(
      new LinuxDevice(std::move(name), mode, std::move(kernel), facts, std::move(*layout)));
  device->Learn(*zones);
  return device;
}

LinuxDevice::LinuxDevice(std::string name, OpenMode mode, std::unique_ptr<BlockKernel> kernel, QueueFacts facts,
                         ZoneLayout layout)
    : name_(std::move(name)),
      mode_(mode),
      facts_(std::move(facts)),
      layout_(std::move(layout)),
      kernel_(std::move(kernel)),
      book_(layout_.geometry()) {
  if (kernel_->may_err_about_pointers()) write_again_ = std::make_unique<TaskThreads>("isozone-again", 1);
}

LinuxDevice::~LinuxDevice() = default;

void LinuxDevice::Learn(std::span<const KernelZone> zones) {
  for (uint32_t i = 0; i < geometry().zone_count; ++i) {
    const ZoneId zone(i);
    const KernelZone& reported = zones[layout_.PositionOf(zone) / geometry().zone_size];
    book_.Learn(layout_.Describe(zone, reported), book_.VersionOf(zone));
    if (!read_only() && layout_.NeedsFinish(reported)) left_active_.push_back(zone);
  }
  finishes_first_ = !left_active_.empty();
}

bool LinuxDevice::WaitsForFinish(DeviceRequest& request) {
  if (!finishes_first_.load(std::memory_order_acquire)) return false;
  const MutexLock lock(first_mu_);
  if (!finishes_first_.load(std::memory_order_relaxed)) return false;
  if (first_changes_.empty()) tasks_.Add([this] { FinishLeftActive(); });
  first_changes_.push_back(&request);
  return true;
}

void LinuxDevice::FinishLeftActive() {
  for (const ZoneId zone : left_active_) Finish(zone);
  std::vector<DeviceRequest*> changes;
  {
    const MutexLock lock(first_mu_);
    finishes_first_.store(false, std::memory_order_release);
    changes.swap(first_changes_);
  }
  for (DeviceRequest* request : changes) Start(*request);
}

void LinuxDevice::Finish(ZoneId zone) {
  const int error = kernel_->Manage(ZoneCommand::kFinish, layout_.PositionOf(zone), geometry().zone_size);
  if (error != 0) Log().warn("{}: zone {} is full and stays active: {}", name_, zone.value(), std::strerror(error));
}

void LinuxDevice::Complete(DeviceRequest& request, DeviceStatus status) {
  request.status = status;
  request.done(request);
}

void LinuxDevice::Submit(DeviceRequest& request) {
  if (is_gone_.load(std::memory_order_relaxed)) return Complete(request, DeviceStatus::kInternalError);
  const DeviceStatus status = CheckRequest(geometry(), read_only(), request);
  if (status != DeviceStatus::kSuccess) return Complete(request, status);
  if (Changes(request.op) && WaitsForFinish(request)) return;
  Start(request);
}

void LinuxDevice::Start(DeviceRequest& request) {
  switch (request.op) {
    case DeviceOp::kRead:
      return StartRead(request);
    case DeviceOp::kWrite:
    case DeviceOp::kAppend:
      if (!book_.IsInDoubt(ZoneOf(request))) return StartWrite(request);
      return tasks_.Add([this, &request] {
        const int error = Settle(ZoneOf(request));
        return error == 0 ? StartWrite(request) : Complete(request, StatusOf(geometry(), request, error, nullptr));
      });
    case DeviceOp::kFlush:
      return StartFlush(request);
    default:
      return StartZoneCommand(request);
  }
}

void LinuxDevice::Send(DeviceRequest& request, KernelTransfer::Kind kind, uint64_t position, uint64_t length,
                       int resends) {
  auto* const command = new Command{this, &request, {}, resends};  // owned by the transfer until that has completed
  KernelTransfer& transfer = command->transfer;
  transfer.kind = kind;
  transfer.durable = kind == KernelTransfer::Kind::kWrite && request.fua && facts_.durable == DurableWrites::kForced;
  transfer.may_block = request.may_block || resends > 0;
  transfer.data = request.data;
  transfer.length = length;
  transfer.position = position;
  transfer.context = command;
  transfer.done = [](KernelTransfer& done) {
    std::unique_ptr<Command> owned(static_cast<Command*>(done.context));
    LinuxDevice& device = *owned->device;
    device.OnTransferred(std::move(owned));
  };
  kernel_->Start(transfer);
}

void LinuxDevice::StartRead(DeviceRequest& request) {
  const ZoneId id = ZoneOf(request);
  const uint64_t end = geometry().OffsetInZone(request.offset) + request.length;
  const uint64_t readable = book_.Readable(id);
  if (end <= readable || !(read_only() || book_.IsInDoubt(id))) {
    return book_.IsOffline(id) ? Complete(request, DeviceStatus::kZoneIsOffline) : Read(request, readable);
  }
  tasks_.Add([this, &request, id] {
    ZoneDescriptor zone;
    const uint64_t version = book_.VersionOf(id);
    if (const int error = Describe(id, zone); error != 0) {
      return Complete(request, StatusOf(geometry(), request, error, nullptr));
    }
    book_.Learn(zone, version);
    if (zone.state == ZoneState::kOffline) return Complete(request, DeviceStatus::kZoneIsOffline);
    // What the book has may come from another request, whose report is older than this request.
    Read(request, zone.write_pointer);
  });
}

void LinuxDevice::Read(DeviceRequest& request, uint64_t readable) {
  const uint64_t begin = geometry().OffsetInZone(request.offset);
  const uint64_t stored = readable > begin ? std::min(request.length, readable - begin) : 0;
  std::memset(request.data + stored, 0, request.length - stored);
  if (stored == 0) return Complete(request, DeviceStatus::kSuccess);
  Send(request, KernelTransfer::Kind::kRead, layout_.PositionOf(request.offset), stored);
}

void LinuxDevice::StartWrite(DeviceRequest& request) {
  bool waits = false;
  DeviceStatus status = DeviceStatus::kSuccess;
  if (request.op == DeviceOp::kAppend) {
    status = book_.TakeAppend(request, waits);
  } else {
    request.written_at = request.offset;
    status = book_.BeginWrite(ZoneOf(request), geometry().OffsetInZone(request.offset), request.length);
  }
  if (waits) return;
  if (status != DeviceStatus::kSuccess) return Complete(request, status);
  Write(request);
}

void LinuxDevice::Write(DeviceRequest& request) {
  Send(request, KernelTransfer::Kind::kWrite, layout_.PositionOf(request.written_at), request.length);
}

void LinuxDevice::StartFlush(DeviceRequest& request) {
  if (read_only() || facts_.durable == DurableWrites::kAlways) return Complete(request, DeviceStatus::kSuccess);
  Send(request, KernelTransfer::Kind::kFlush, 0, 0);
}

bool LinuxDevice::Resend(std::unique_ptr<Command>& command) {
  if (!IsInterrupted(command->transfer.result) || command->transfer.kind == KernelTransfer::Kind::kWrite) return false;
  if (++command->resends > kMostResends) return false;
  command->transfer.resent = true;
  kernel_->Start(command.release()->transfer);
  return true;
}

void LinuxDevice::OnTransferred(std::unique_ptr<Command> command) {
  if (Resend(command)) return;
  DeviceRequest& request = *command->request;
  const KernelTransfer& transfer = command->transfer;
  const bool is_flush = transfer.kind == KernelTransfer::Kind::kFlush;
  if (transfer.result != static_cast<int64_t>(is_flush ? 0 : transfer.length)) {
    const int error = transfer.result < 0 ? static_cast<int>(-transfer.result) : EIO;
    if (MayWriteAgain(request, error, command->resends)) {
      return write_again_->Add([this, &request, error, resends = command->resends] {
        if (!WriteAgain(request, resends)) Resolve(request, error);
      });
    }
    return tasks_.Add([this, &request, error] { Resolve(request, error); });
  }
  if (!IsWrite(request.op)) {
    if (!is_flush) bytes_read_.fetch_add(request.length, std::memory_order_relaxed);
    return Complete(request, DeviceStatus::kSuccess);
  }
  if (!is_flush && request.fua && facts_.durable == DurableWrites::kFlushed) {
    return Send(request, KernelTransfer::Kind::kFlush, 0, 0);
  }
  bytes_written_.fetch_add(request.length, std::memory_order_relaxed);
  const bool fills = geometry().OffsetInZone(request.written_at) + request.length == geometry().zone_capacity;
  if (fills && layout_.IsLarge(ZoneOf(request))) return tasks_.Add([this, &request] { FinishLarge(request); });
  EndWrite(request);
}

void LinuxDevice::EndWrite(DeviceRequest& request) {
  if (book_.EndWrite(ZoneOf(request), request.length)) return CompleteWrite(request, DeviceStatus::kSuccess);
  tasks_.Add([this, &request] { Resolve(request, 0); });
}

void LinuxDevice::CompleteWrite(DeviceRequest& request, DeviceStatus status) {
  const ZoneId zone = ZoneOf(request);
  DeviceStatus next_status = DeviceStatus::kSuccess;
  while (DeviceRequest* next = book_.NextAppend(zone, next_status)) {
    next->may_block = false;  // this is not the thread that submitted it
    if (next_status == DeviceStatus::kSuccess) {
      Write(*next);
      break;
    }
    Complete(*next, next_status);
  }
  Complete(request, status);
}

// Finds out what has become of the zone of a request that ended with `error`, or, if that is 0, of one that succeeded
// while the zone was reset or finished. Completes the request.
void LinuxDevice::Resolve(DeviceRequest& request, int error) {
  if (IsGone(error)) LatchGone(error);
  if (request.op == DeviceOp::kFlush) return Complete(request, StatusOf(geometry(), request, error, nullptr));
  if (IsWrite(request.op)) return ResolveWrite(request, error);
  ZoneDescriptor zone;
  const uint64_t version = book_.VersionOf(ZoneOf(request));
  const int unknown = Describe(ZoneOf(request), zone);
  const bool is_current = unknown == 0 && book_.Learn(zone, version);
  const int reason = IsGone(unknown) ? unknown : error;
  DeviceStatus status = StatusOf(geometry(), request, reason, unknown == 0 ? &zone : nullptr);
  // Of a zone that has changed since, the report does not tell what the command did.
  if (status == DeviceStatus::kSuccess && !is_current) status = DeviceStatus::kWriteFault;
  Complete(request, status);
}

bool LinuxDevice::MayWriteAgain(const DeviceRequest& request, int error, int resends) const {
  return write_again_ != nullptr && IsWrite(request.op) && error == EIO && resends < kMostWriteResends;
}

bool LinuxDevice::WriteAgain(DeviceRequest& request, int resends) {
  const ZoneId id = ZoneOf(request);
  ZoneDescriptor zone;
  if (Describe(id, zone) != 0) return false;
  const bool is_open = zone.state == ZoneState::kEmpty || IsActive(zone.state);
  if (!is_open || zone.write_pointer != geometry().OffsetInZone(request.written_at)) return false;
  Send(request, KernelTransfer::Kind::kWrite, layout_.PositionOf(request.written_at), request.length, resends + 1);
  return true;
}

void LinuxDevice::ResolveWrite(DeviceRequest& request, int error) {
  const ZoneId id = ZoneOf(request);
  ZoneDescriptor zone;
  int unknown = 0;
  bool learnt = false;
  for (int attempt = 0; !learnt && attempt < kRelearnAttempts; ++attempt) {
    const uint64_t version = book_.VersionOf(id);
    unknown = Describe(id, zone);
    if (unknown != 0) break;
    // Until the zone is learnt nothing is written into it, so this does not finish what follows a reset.
    if (layout_.IsLarge(id) && zone.state == ZoneState::kFull) Finish(id);
    learnt = book_.Relearn(zone, version);
  }
  if (!learnt) book_.Forget(id);
  const int reason = IsGone(unknown) ? unknown : error;
  DeviceStatus status = DeviceStatus::kSuccess;
  if (reason != 0) status = StatusOf(geometry(), request, reason, unknown == 0 ? &zone : nullptr);
  CompleteWrite(request, status);
}

// The zone has all that the seam can write, but could take more on the device.
void LinuxDevice::FinishLarge(DeviceRequest& request) {
  Finish(ZoneOf(request));
  EndWrite(request);
}

void LinuxDevice::StartZoneCommand(DeviceRequest& request) {
  if (!book_.MayChange(ZoneOf(request))) return Complete(request, DeviceStatus::kInvalidZoneStateTransition);
  if (request.op != DeviceOp::kReset) {
    return tasks_.Add([this, &request] { RunZoneCommand(request); });
  }
  {
    const MutexLock lock(resets_mu_);
    resets_.push_back(&request);
  }
  tasks_.Add([this] { RunResets(); });
}

std::vector<DeviceRequest*> LinuxDevice::TakeResets() {
  const MutexLock lock(resets_mu_);
  std::sort(resets_.begin(), resets_.end(),
            [](const DeviceRequest* a, const DeviceRequest* b) { return a->offset < b->offset; });
  size_t count = std::min<size_t>(resets_.size(), 1);
  while (count > 0 && count < resets_.size() &&
         layout_.PositionOf(ZoneOf(*resets_[count])) ==
             layout_.PositionOf(ZoneOf(*resets_[count - 1])) + geometry().zone_size) {
    ++count;
  }
  const auto end = resets_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<DeviceRequest*> taken(resets_.begin(), end);
  resets_.erase(resets_.begin(), end);
  return taken;
}

void LinuxDevice::RunResets() {
  const std::vector<DeviceRequest*> taken = TakeResets();
  if (taken.empty()) return;  // another thread has taken them with its own
  const uint64_t zone_size = geometry().zone_size;
  const uint64_t first = layout_.PositionOf(ZoneOf(*taken.front()));
  std::vector<uint64_t> versions;
  for (const DeviceRequest* request : taken) versions.push_back(book_.VersionOf(ZoneOf(*request)));
  const int error = kernel_->Manage(ZoneCommand::kReset, first, taken.size() * zone_size);
  for (size_t i = 0; i < taken.size(); ++i) {
    DeviceRequest& request = *taken[i];
    int own = error;
    // One zone of several may be the cause.
    if (error != 0 && taken.size() > 1) {
      own = kernel_->Manage(ZoneCommand::kReset, layout_.PositionOf(ZoneOf(request)), zone_size);
    }
    EndZoneCommand(request, own, versions[i]);
  }
}

void LinuxDevice::RunZoneCommand(DeviceRequest& request) {
  const ZoneId id = ZoneOf(request);
  const uint64_t version = book_.VersionOf(id);
  if (request.op == DeviceOp::kOpen || request.op == DeviceOp::kClose) {
    ZoneDescriptor zone;
    if (const int error = Describe(id, zone); error != 0) return Resolve(request, error);
    if (!Allows(zone.state, request.op)) return Complete(request, DeviceStatus::kInvalidZoneStateTransition);
  }
  const int error = kernel_->Manage(CommandOf(request.op), layout_.PositionOf(id), geometry().zone_size);
  EndZoneCommand(request, error, version);
}

void LinuxDevice::EndZoneCommand(DeviceRequest& request, int error, uint64_t version) {
  const ZoneId id = ZoneOf(request);
  if (error != 0) return Resolve(request, error);
  if (request.op == DeviceOp::kReset) {
    if (!book_.NoteReset(id, version)) (void)Settle(id);  // otherwise the zone stays in doubt
    resets_done_.fetch_add(1, std::memory_order_relaxed);
  } else if (request.op == DeviceOp::kFinish) {
    if (!book_.NoteFinish(id, version)) (void)Settle(id);
    finishes_done_.fetch_add(1, std::memory_order_relaxed);
  }
  Complete(request, DeviceStatus::kSuccess);
}

int LinuxDevice::Settle(ZoneId id) {
  for (int attempt = 0; attempt < kRelearnAttempts; ++attempt) {
    ZoneDescriptor zone;
    const uint64_t version = book_.VersionOf(id);
    if (const int error = Describe(id, zone); error != 0) return error;
    if (book_.Learn(zone, version)) return 0;
  }
  return EBUSY;
}

int LinuxDevice::Describe(ZoneId zone, ZoneDescriptor& descriptor) {
  KernelZone reported;
  const int error = ReportPatiently(*kernel_, layout_.PositionOf(zone), {&reported, 1});
  if (error == 0) descriptor = layout_.Describe(zone, reported);
  if (IsGone(error)) LatchGone(error);
  return error;
}

void LinuxDevice::LatchGone(int error) {
  const MutexLock lock(gone_mu_);
  if (!gone_.ok()) return;
  gone_ = Status::IoError(
      fmt::format("{} is gone: {}; check its connection, then open it again", name_, std::strerror(error)));
  is_gone_.store(true, std::memory_order_relaxed);
  Log().error("{}", gone_.message());
}

Status LinuxDevice::gone() const {
  const MutexLock lock(gone_mu_);
  return gone_;
}

Status LinuxDevice::ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const {
  if (first.value() > geometry().zone_count || out.size() > geometry().zone_count - first.value()) {
    return Status::InvalidArgument(fmt::format("the device has {} zones, not {} from zone {} on", geometry().zone_count,
                                               out.size(), first.value()));
  }
  ISOZONE_RETURN_IF_ERROR(gone());
  std::vector<KernelZone> reported;
  while (!out.empty()) {
    reported.resize(layout_.RunOf(first, static_cast<uint32_t>(out.size())));
    const int error = ReportPatiently(*kernel_, layout_.PositionOf(first), reported);
    if (error != 0) return Status::FromErrno(error, fmt::format("{}: the kernel does not report its zones", name_));
    for (const KernelZone& zone : reported) {
      out.front() = layout_.Describe(first, zone);
      out = out.subspan(1);
      ++first;
    }
  }
  return {};
}

DeviceDescription LinuxDevice::description() const {
  KernelDeviceDescription kernel{.path = kernel_->path(),
                                 .model = facts_.model,
                                 .scheduler = facts_.scheduler,
                                 .transfer_path = kernel_->transfer_path(),
                                 .durable_writes = std::string(DurableWritesName(facts_.durable)),
                                 .conventional_zones = layout_.conventional(),
                                 .small_zones = layout_.small(),
                                 .large_zones = layout_.large(),
                                 .zone_positions = {}};
  for (uint32_t i = 0; i < geometry().zone_count; ++i) kernel.zone_positions.push_back(layout_.PositionOf(ZoneId(i)));
  return {.emulation = {}, .kernel = std::move(kernel)};
}

DeviceCounters LinuxDevice::counters() const {
  DeviceCounters counters;
  counters.host_bytes_read = bytes_read_.load(std::memory_order_relaxed);
  counters.host_bytes_written = bytes_written_.load(std::memory_order_relaxed);
  counters.media_bytes_written = counters.host_bytes_written;
  counters.resets = resets_done_.load(std::memory_order_relaxed);
  counters.finishes = finishes_done_.load(std::memory_order_relaxed);
  return counters;
}

}  // namespace isozone
