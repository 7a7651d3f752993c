// IoEngine: the one door to the device for file data. It counts every request by class, bytes and latency, and lets a
// thread wait for requests that complete on another.
//
// Thread safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/histogram.h"
#include "base/mutex.h"
#include "device/zoned_device.h"
#include "io/io_class.h"

namespace isozone {

class IoEngine;

// One request. The submitter owns it and keeps it until `done` was called; the rules of DeviceRequest hold.
struct IoRequest {
  DeviceRequest device;  // op, fua, offset, data, length; `done` and `context` belong to the engine
  IoClass io_class = IoClass::kOther;
  void (*done)(IoRequest& request) = nullptr;
  void* context = nullptr;  // the submitter's

  IoEngine* engine = nullptr;  // the engine's
  int64_t submitted_ns = 0;    // the engine's
};

// Counts completions down to zero; one thread waits. Each of the events it was made for calls CountDown once.
class Latch {
 public:
  explicit Latch(int64_t count) : count_(count) {}

  void CountDown() {
    const MutexLock lock(mu_);
    // Signalled under the lock: the waiter may destroy this object as soon as it sees zero.
    if (--count_ == 0) cv_.SignalAll();
  }
  void Wait() {
    const MutexLock lock(mu_);
    while (count_ > 0) cv_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar cv_;
  int64_t count_ ISOZONE_GUARDED_BY(mu_);
};

struct IoClassStats {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  Histogram::Snapshot read_latency_ns;
  Histogram::Snapshot write_latency_ns;
};

class IoEngine {
 public:
  explicit IoEngine(ZonedDevice& device) : device_(device) {}

  ZonedDevice& device() { return device_; }

  void Submit(IoRequest& request);

  // Submits and waits; the outcome is in request.device.status.
  DeviceStatus Run(IoRequest& request);

  // Every write that completed before is durable when this returns OK.
  Status Flush(IoClass io_class);

  IoClassStats Stats(IoClass io_class) const;

 private:
  struct PerClass {
    std::atomic<uint64_t> bytes_read{0};
    std::atomic<uint64_t> bytes_written{0};
    Histogram read_latency_ns;
    Histogram write_latency_ns;
  };

  static void OnDone(DeviceRequest& request);

  ZonedDevice& device_;
  std::array<PerClass, kIoClassCount> classes_;
};

}  // namespace isozone
