// ManualClock: a clock that a test sets. A thread that waits for a time waits until Advance has reached it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace isozone {

// Thread safety: any thread may call any method. Advance and AwaitWaiter must be called without the mutexes of waiters.
class ManualClock final : public Clock {
 public:
  int64_t NowNs() const override {
    const MutexLock lock(mu_);
    return now_ns_;
  }

  uint64_t NowWallS() const override {
    const MutexLock lock(mu_);
    return now_wall_s_;
  }

  void SetWall(uint64_t seconds) {
    const MutexLock lock(mu_);
    now_wall_s_ = seconds;
  }

  void WaitUntil(CondVar& condition, Mutex& mu, int64_t deadline_ns) override ISOZONE_REQUIRES(mu) {
    {
      const MutexLock lock(mu_);
      if (now_ns_ >= deadline_ns) return;
      waiting_.push_back({&condition, &mu, deadline_ns});
      changed_.SignalAll();
    }
    condition.Wait(mu);
    const MutexLock lock(mu_);
    std::erase_if(waiting_, [&](const Waiter& waiter) { return waiter.condition == &condition && waiter.mu == &mu; });
  }

  void Advance(int64_t ns) {
    std::vector<Waiter> waiting;
    {
      const MutexLock lock(mu_);
      now_ns_ += ns;
      waiting = waiting_;
    }
    // A thread in the list has read the old time, and waits or is about to: it holds its mutex until it does.
    for (const Waiter& waiter : waiting) {
      const MutexLock lock(*waiter.mu);
      waiter.condition->SignalAll();
    }
  }

  // Waits until a thread waits for a time later than `after_ns`, and returns that time.
  int64_t AwaitWaiter(int64_t after_ns) {
    const MutexLock lock(mu_);
    for (;;) {
      for (const Waiter& waiter : waiting_) {
        if (waiter.deadline_ns > after_ns) return waiter.deadline_ns;
      }
      changed_.Wait(mu_);
    }
  }

 private:
  struct Waiter {
    CondVar* condition;
    Mutex* mu;
    int64_t deadline_ns;
  };
  mutable Mutex mu_;
  CondVar changed_;  // signalled when waiting_ changes
  int64_t now_ns_ ISOZONE_GUARDED_BY(mu_) = 0;
  uint64_t now_wall_s_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::vector<Waiter> waiting_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
