#include "gc_bench/gc_io.h"

#include <algorithm>
#include <utility>

namespace isozone::cli {

IoQueue::~IoQueue() {
  while (in_flight_ > 0) static_cast<void>(Pop());
}

void IoQueue::Submit(DeviceOp op, DeviceOffset offset, std::byte* data, uint64_t length, Done done) {
  if (free_.empty()) free_.push_back(slots_.emplace_back(std::make_unique<Slot>()).get());
  Slot& slot = *free_.back();
  free_.pop_back();
  slot.done = std::move(done);
  slot.queue = this;
  slot.request = DeviceRequest{};
  slot.request.op = op;
  slot.request.offset = offset;
  slot.request.data = data;
  slot.request.length = length;
  slot.request.done = OnDone;
  slot.request.context = &slot;
  in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
  device_.Submit(slot.request);
}

// Signals under the lock: the queue may be destroyed as soon as its last command was popped.
void IoQueue::OnDone(DeviceRequest& request) {
  auto* slot = static_cast<Slot*>(request.context);
  IoQueue& queue = *slot->queue;
  const MutexLock lock(queue.mu_);
  queue.completed_.push_back(slot);
  queue.completed_one_.Signal();
}

IoQueue::Slot* IoQueue::Pop() {
  const MutexLock lock(mu_);
  while (completed_.empty()) completed_one_.Wait(mu_);
  Slot* slot = completed_.front();
  completed_.pop_front();
  --in_flight_;
  return slot;
}

Status IoQueue::RunOne() {
  Slot* slot = Pop();
  const Status status = ToStatus(device_.geometry(), slot->request);
  if (error_.ok()) error_ = status;
  const Done done = std::exchange(slot->done, nullptr);
  free_.push_back(slot);
  if (error_.ok()) done();
  return error_;
}

}  // namespace isozone::cli
