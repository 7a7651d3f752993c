#include "isozone/bench/command_loops.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/clock.h"
#include "base/mutex.h"

namespace isozone::cli {
namespace {

class CompletionQueue;

// A loop while it runs.
struct Slot {
  CommandLoop* loop = nullptr;
  CompletionQueue* queue = nullptr;
  DeviceRequest request;
  int64_t submitted_ns = 0;
  int64_t completed_ns = 0;
};

// First in, first out, so that no loop starves another if commands complete inside Submit.
class CompletionQueue {
 public:
  // Signals under the lock: the queue may be destroyed as soon as its last slot was popped.
  void Push(Slot* slot) ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    completed_.push_back(slot);
    not_empty_.Signal();
  }

  Slot* Pop() ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    while (completed_.empty()) not_empty_.Wait(mu_);
    Slot* slot = completed_.front();
    completed_.pop_front();
    return slot;
  }

 private:
  Mutex mu_;
  CondVar not_empty_;
  std::deque<Slot*> completed_ ISOZONE_GUARDED_BY(mu_);
};

void OnDone(DeviceRequest& request) {
  auto* slot = static_cast<Slot*>(request.context);
  slot->completed_ns = MonotonicNs();
  slot->queue->Push(slot);
}

// Returns false when the loop has no more commands.
bool SubmitNext(ZonedDevice& device, Slot& slot) {
  slot.request = DeviceRequest{};
  if (!slot.loop->next(slot.request)) return false;
  slot.request.done = OnDone;
  slot.request.context = &slot;
  slot.submitted_ns = MonotonicNs();
  device.Submit(slot.request);
  return true;
}

Status Record(const DeviceGeometry& geometry, Slot& slot) {
  ISOZONE_RETURN_IF_ERROR(ToStatus(geometry, slot.request));
  if (slot.request.op != DeviceOp::kRead && slot.request.op != DeviceOp::kWrite) return Status::Ok();
  slot.loop->latencies_ns.push_back(slot.completed_ns - slot.submitted_ns);
  slot.loop->bytes += slot.request.length;
  return Status::Ok();
}

}  // namespace

Status RunLoops(ZonedDevice& device, std::span<CommandLoop> loops) {
  CompletionQueue queue;
  std::vector<Slot> slots(loops.size());
  size_t in_flight = 0;
  size_t foreground = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    slots[i].loop = &loops[i];
    slots[i].queue = &queue;
    if (!SubmitNext(device, slots[i])) continue;
    ++in_flight;
    if (!loops[i].background) ++foreground;
  }
  Status first_error;
  while (in_flight > 0) {
    Slot& slot = *queue.Pop();
    const Status status = Record(device.geometry(), slot);
    if (first_error.ok()) first_error = status;
    if (first_error.ok() && foreground > 0 && SubmitNext(device, slot)) continue;
    --in_flight;
    if (!slot.loop->background) --foreground;
  }
  return first_error;
}

int64_t PercentileOf(std::vector<int64_t> values, double percent) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::llround(static_cast<double>(values.size() - 1) * percent / 100));
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(rank));
  return values[rank];
}

}  // namespace isozone::cli
