// RecentReads: which zones the background reads of compaction and GC have touched lately, so that they can be drawn.
// Zones share kPlaces places, of which each keeps the last zone that was read. So of two zones that share a place and
// are read at the same time, only one is seen.
//
//   a place   zone : 32 | IoClass + 1 : 4 | milliseconds of CLOCK_MONOTONIC : 28, from the highest bit on; 0: none
//
// Thread safety: any thread may call any method; none waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "store/io/io_class.h"

namespace isozone {

struct ZoneRead {
  static constexpr uint32_t kMilliseconds = 1U << 28U;

  bool any = false;  // false: nothing was read
  uint32_t zone = 0;
  IoClass io_class = IoClass::kOther;
  uint32_t at_ms = 0;  // of CLOCK_MONOTONIC, modulo kMilliseconds
  bool operator==(const ZoneRead&) const = default;
};

constexpr uint64_t PackRead(const ZoneRead& read) {
  if (!read.any) return 0;
  return uint64_t{read.zone} << 32 | (static_cast<uint64_t>(read.io_class) + 1) << 28 |
         read.at_ms % ZoneRead::kMilliseconds;
}

// Unpacks any word into a valid class.
constexpr ZoneRead UnpackRead(uint64_t word) {
  const uint64_t io_class = word >> 28 & 0xF;
  if (io_class == 0 || io_class > kIoClassCount) return {};
  return {true, static_cast<uint32_t>(word >> 32), static_cast<IoClass>(io_class - 1),
          static_cast<uint32_t>(word % ZoneRead::kMilliseconds)};
}

class RecentReads {
 public:
  static constexpr size_t kPlaces = 256;

  void Note(uint32_t zone, IoClass io_class, int64_t now_ns) {
    const auto ms = static_cast<uint32_t>(now_ns / kMillisecondNs % ZoneRead::kMilliseconds);
    places_[zone % kPlaces].store(PackRead({true, zone, io_class, ms}), std::memory_order_relaxed);
  }
  // Returns a place as PackRead has it. `place` must be below kPlaces.
  uint64_t At(size_t place) const { return places_[place].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace isozone
