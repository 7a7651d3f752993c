// The two clocks: monotonic for intervals and deadlines, wall for what people read.
#pragma once

#include <chrono>
#include <cstdint>

namespace isozone {

// Nanoseconds of CLOCK_MONOTONIC (what std::chrono::steady_clock counts).
inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Seconds since 1970, UTC.
inline uint64_t WallSeconds() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

}  // namespace isozone
