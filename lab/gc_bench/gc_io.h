// Device commands of the benchmarks: many in flight from one thread. Each has a function that runs on that thread once
// the command has completed.
//
// Thread safety of the queue: none. Threads of the device only queue completed commands.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "device/zoned_device.h"

namespace isozone::cli {

class IoQueue {
 public:
  using Done = std::function<void()>;

  explicit IoQueue(ZonedDevice& device) : device_(device) {}
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;
  // Waits for all commands in flight without running their functions.
  ~IoQueue();

  // `data` must live until `done` has run. For resets, `data` is null and `length` 0.
  void Submit(DeviceOp op, DeviceOffset offset, std::byte* data, uint64_t length, Done done);
  // Waits until a command has completed, and runs its function. Once a command has failed, this returns its error, and
  // no function runs any more. At least one command must be in flight.
  Status RunOne();

  size_t in_flight() const { return in_flight_; }
  // The most commands that were in flight at once.
  size_t in_flight_max() const { return in_flight_max_; }

 private:
  struct Slot {
    DeviceRequest request;
    Done done;
    IoQueue* queue = nullptr;
  };

  static void OnDone(DeviceRequest& request);
  Slot* Pop() ISOZONE_EXCLUDES(mu_);

  ZonedDevice& device_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  size_t in_flight_ = 0;
  size_t in_flight_max_ = 0;
  Status error_;

  Mutex mu_;
  CondVar completed_one_;
  std::deque<Slot*> completed_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone::cli
