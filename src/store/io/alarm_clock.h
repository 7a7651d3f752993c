// AlarmClock: tells the time, and calls back at a given time. ThreadAlarmClock is the real one; tests have their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace isozone {

// Thread safety: any thread may call any method.
class AlarmClock {
 public:
  virtual ~AlarmClock() = default;
  // Returns nanoseconds. Never goes back.
  virtual int64_t Now() const = 0;
  // Calls `ring(what)` once, at `at_ns` or soon after, but never inside this call. Returns false if it will not,
  // because no thread can be had for the first alarm.
  [[nodiscard]] virtual bool RingAt(int64_t at_ns, uint32_t what) = 0;
  // Sets the function to call. Must be called before the first RingAt.
  virtual void OnRing(std::function<void(uint32_t what)> ring) = 0;
  // Ends the alarms. No call is running or will start once this returns.
  virtual void Stop() = 0;
};

// Runs on MonotonicNs(), with a thread that starts with the first RingAt.
class ThreadAlarmClock final : public AlarmClock {
 public:
  ~ThreadAlarmClock() override { Stop(); }
  int64_t Now() const override { return MonotonicNs(); }
  bool RingAt(int64_t at_ns, uint32_t what) override;
  void OnRing(std::function<void(uint32_t what)> ring) override { ring_ = std::move(ring); }
  void Stop() override;

 private:
  struct Alarm {
    int64_t at_ns;
    uint32_t what;
    bool operator>(const Alarm& other) const { return at_ns > other.at_ns; }
  };

  void Run();

  std::function<void(uint32_t)> ring_;
  Mutex mu_;
  CondVar changed_;
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_ ISOZONE_GUARDED_BY(mu_);
  std::optional<std::thread> thread_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
