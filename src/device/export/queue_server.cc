#include "device/export/queue_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "device/linux/block_kernel.h"

namespace isozone {

// The resets of one "reset all", which are at the device at the same time.
struct ResetAllCommands {
  std::vector<DeviceRequest> commands;
  std::atomic<size_t> left = 0;  // that have not ended, and one while they are submitted
};

QueueServer::QueueServer(ZonedDevice& device, WriteLedger& ledger, const ExportLayout& layout, uint32_t first_slot)
    : device_(device),
      ledger_(ledger),
      layout_(layout),
      first_slot_(first_slot),
      memory_(size_t{layout.depth} * layout.max_transfer),
      tasks_(layout.depth) {
  for (uint16_t tag = 0; tag < layout.depth; ++tag) {
    tasks_[tag].server = this;
    tasks_[tag].tag = tag;
  }
  const MutexLock lock(mu_);
  ended_.reserve(layout.depth);
}

QueueServer::~QueueServer() = default;

void QueueServer::Run(ExportQueue& queue) {
  queue_ = &queue;
  std::vector<uint16_t> arrived;
  std::vector<Task*> ended;
  arrived.reserve(layout_.depth);
  ended.reserve(layout_.depth);
  while (queue.Wait(arrived) == 0) {
    for (const uint16_t tag : arrived) Arrive(tasks_[tag]);
    arrived.clear();
    ended.clear();
    {
      const MutexLock lock(mu_);
      ended.swap(ended_);
    }
    for (Task* task : ended) End(*task);
  }
}

void QueueServer::Arrive(Task& task) {
  const DeviceGeometry& geometry = device_.geometry();
  const int error = ParseRequest(geometry, layout_.max_transfer, queue_->Describe(task.tag), task.request);
  if (error != 0) return Answer(task, -error);
  if (task.request.kind == BlockRequest::Kind::kReportZones) return Report(task);
  if (task.request.kind == BlockRequest::Kind::kResetAll) return ResetAll(task);
  task.command = DeviceRequest();
  task.command.op = task.request.op;
  task.command.fua = task.request.fua;
  task.command.offset = task.request.offset;
  task.command.length = task.request.length;
  task.command.data = memory_.data() + size_t{task.tag} * layout_.max_transfer;
  task.command.context = &task;
  task.command.done = &OnEnded;
  if (task.request.op == DeviceOp::kWrite || task.request.op == DeviceOp::kAppend) {
    if (const int failed = queue_->CopyIn(task.tag, {task.command.data, task.command.length}); failed != 0) {
      return Answer(task, -failed);
    }
    if (!WasDoneBefore(task)) ledger_.Submit(first_slot_ + task.tag, task.command);
    return;
  }
  device_.Submit(task.command);
}

bool QueueServer::WasDoneBefore(Task& task) {
  for (const WriteLedger::Leftover& leftover : ledger_.Find(task.command)) {
    const DeviceGeometry& geometry = device_.geometry();
    const uint64_t offset = geometry.OffsetInZone(leftover.place);
    ZoneDescriptor zone;
    if (!device_.ReportZones(geometry.ZoneOf(leftover.place), {&zone, 1}).ok()) return false;
    const uint64_t written = zone.write_pointer <= offset ? 0 : std::min(zone.write_pointer - offset, leftover.length);
    const bool is_write = leftover.op == DeviceOp::kWrite;
    // The device had not got it, or not all of it: a write is done where it belongs, an append anew.
    if (written == 0 || (!is_write && written < leftover.length)) continue;
    if (!is_write && !HasBytes(task, leftover.place, written)) continue;
    ledger_.Adopt(first_slot_ + task.tag, leftover);
    const int error = ErrorOf(Complete(task, leftover.place, written));
    const auto result = error != 0 ? -error : static_cast<int32_t>(leftover.length);
    Answer(task, result, is_write || error != 0 ? 0 : leftover.place.value() / kKernelSector);
    return true;
  }
  return false;
}

bool QueueServer::HasBytes(const Task& task, DeviceOffset place, uint64_t length) {
  AlignedBuffer there(length);
  DeviceRequest read;
  read.op = DeviceOp::kRead;
  read.offset = place;
  read.data = there.data();
  read.length = length;
  return SubmitAndWait(device_, read) == DeviceStatus::kSuccess &&
         std::memcmp(there.data(), task.command.data, length) == 0;
}

DeviceStatus QueueServer::Complete(Task& task, DeviceOffset place, uint64_t written) {
  if (written < task.request.length) {
    DeviceRequest rest = task.command;
    rest.offset = DeviceOffset(place.value() + written);
    rest.data += written;
    rest.length -= written;
    if (const DeviceStatus status = SubmitAndWait(device_, rest); status != DeviceStatus::kSuccess) return status;
  }
  if (!task.request.fua) return DeviceStatus::kSuccess;
  DeviceRequest flush;
  flush.op = DeviceOp::kFlush;
  return SubmitAndWait(device_, flush);
}

void QueueServer::Report(Task& task) {
  const DeviceGeometry& geometry = device_.geometry();
  std::vector<ZoneDescriptor> zones(task.request.zones);
  if (!device_.ReportZones(geometry.ZoneOf(task.request.offset), zones).ok()) return Answer(task, -EIO);
  auto* const entries = reinterpret_cast<blk_zone*>(memory_.data() + size_t{task.tag} * layout_.max_transfer);
  for (size_t i = 0; i < zones.size(); ++i) entries[i] = ToBlkZone(geometry, zones[i]);
  const int error = queue_->CopyOut(task.tag, std::as_bytes(std::span(entries, zones.size())));
  // The kernel's memory for a report may be longer, and it asks for the rest of a request that was answered in part.
  Answer(task, error != 0 ? -error : static_cast<int32_t>(layout_.max_transfer));
}

void QueueServer::ResetAll(Task& task) {
  const DeviceGeometry& geometry = device_.geometry();
  std::vector<ZoneDescriptor> zones(geometry.zone_count);
  if (!device_.ReportZones(ZoneId(0), zones).ok()) return Answer(task, -EIO);
  task.resets = std::make_unique<ResetAllCommands>();
  for (const ZoneDescriptor& zone : zones) {
    if (!IsActive(zone.state) && zone.state != ZoneState::kFull) continue;
    DeviceRequest& command = task.resets->commands.emplace_back();
    command.op = DeviceOp::kReset;
    command.offset = geometry.ZoneStart(zone.zone);
    command.context = &task;
    command.done = [](DeviceRequest& ended) {
      Task& owner = *static_cast<Task*>(ended.context);
      if (--owner.resets->left == 0) owner.server->Enqueue(owner);
    };
  }
  task.resets->left = task.resets->commands.size() + 1;
  for (DeviceRequest& command : task.resets->commands) device_.Submit(command);
  if (--task.resets->left == 0) Enqueue(task);
}

void QueueServer::OnEnded(DeviceRequest& command) {
  Task& task = *static_cast<Task*>(command.context);
  task.server->Enqueue(task);
}

void QueueServer::Enqueue(Task& task) {
  // Under the lock, because the queue may end as soon as its last request was answered.
  const MutexLock lock(mu_);
  ended_.push_back(&task);
  if (ended_.size() == 1) queue_->Wake();
}

void QueueServer::End(Task& task) {
  const BlockRequest& request = task.request;
  int error = 0;
  if (request.kind == BlockRequest::Kind::kResetAll) {
    for (const DeviceRequest& command : task.resets->commands) {
      if (error == 0) error = ErrorOf(command.status);
      ledger_.ZoneWasReset(device_.geometry().ZoneOf(command.offset));
    }
    task.resets.reset();
    return Answer(task, -error);
  }
  error = ErrorOf(task.command.status);
  uint64_t append_sector = 0;
  if (request.op == DeviceOp::kRead && error == 0) {
    error = queue_->CopyOut(task.tag, {task.command.data, task.command.length});
  } else if (request.op == DeviceOp::kWrite || request.op == DeviceOp::kAppend) {
    ledger_.Ended(task.command);
    if (request.op == DeviceOp::kAppend && error == 0) append_sector = task.command.written_at.value() / kKernelSector;
  } else if (request.op == DeviceOp::kReset) {
    ledger_.ZoneWasReset(device_.geometry().ZoneOf(request.offset));
  }
  Answer(task, error != 0 ? -error : static_cast<int32_t>(request.length), append_sector);
}

void QueueServer::Answer(Task& task, int32_t result, uint64_t append_sector) {
  ledger_.Answer(first_slot_ + task.tag);
  queue_->Commit(task.tag, result, append_sector);
}

}  // namespace isozone
