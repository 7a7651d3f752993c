// Clock: the monotonic clock, for intervals and deadlines, and the wall clock, for times that people read. Code whose
// decisions depend on the time gets it from a Clock, so that tests can control it (testing/manual_clock.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "base/mutex.h"

namespace isozone {

// Returns the nanoseconds of CLOCK_MONOTONIC, which std::chrono::steady_clock counts.
inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the seconds since 1970, UTC.
inline uint64_t WallSeconds() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

// Returns the nanoseconds since 1970, UTC.
inline uint64_t WallNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// Thread safety: any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Returns the nanoseconds of the monotonic clock, which never go back.
  virtual int64_t NowNs() const = 0;
  // Returns the seconds since 1970, UTC. The wall clock may be set back.
  virtual uint64_t NowWallS() const = 0;
  // Returns the nanoseconds since 1970, UTC, which may advance in whole seconds.
  virtual uint64_t NowWallNs() const { return NowWallS() * 1'000'000'000; }
  // Waits until `condition` is signalled or `deadline_ns` has come. May return before either.
  virtual void WaitUntil(CondVar& condition, Mutex& mu, int64_t deadline_ns) ISOZONE_REQUIRES(mu) = 0;

  // Returns the clock of the system: MonotonicNs() and WallSeconds().
  static Clock& Real();
};

class RealClock final : public Clock {
 public:
  int64_t NowNs() const override { return MonotonicNs(); }
  uint64_t NowWallS() const override { return WallSeconds(); }
  uint64_t NowWallNs() const override { return WallNs(); }
  void WaitUntil(CondVar& condition, Mutex& mu, int64_t deadline_ns) override ISOZONE_REQUIRES(mu) {
    condition.WaitUntil(mu, deadline_ns);
  }
};

inline Clock& Clock::Real() {
  static RealClock clock;
  return clock;
}

}  // namespace isozone
