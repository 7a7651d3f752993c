// SpaceSwing: how far free space falls before it comes back by itself.
//
//   free ^
//        |\        /\      A compaction writes its outputs before its inputs die, so free space swings as compactions
//        | \  /\  /  \     begin and end, without anybody having to collect anything. What is looked for is the largest
//        |  \/  \/    \    fall, from one moment to any later one, while the last tenth of the device was written.
//        +-------------->  written
//
// So long as less has been written than that, nothing is known.
//
// Pure. Thread safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace isozone {

class SpaceSwing {
 public:
  // `capacity`: bytes of the device.
  explicit SpaceSwing(uint64_t capacity) : step_(std::max<uint64_t>(1, capacity / (kPart * kSteps))) {}

  // Notes that `free` bytes are free when `written` bytes, which never become fewer, have been written in all.
  void Note(uint64_t written, uint64_t free) {
    if (written < next_) return;
    next_ = written + step_;
    free_[noted_++ % kSteps] = free;
    if (noted_ < kSteps) return;
    uint64_t highest = 0;
    uint64_t fall = 0;
    for (size_t i = noted_ - kSteps; i < noted_; ++i) {
      const uint64_t then = free_[i % kSteps];
      highest = std::max(highest, then);
      fall = std::max(fall, highest - then);
    }
    bytes_ = fall;
  }

  // Returns the largest fall, in bytes; none: not known.
  std::optional<uint64_t> bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kPart = 10;  // of the device
  static constexpr size_t kSteps = 64;   // in which that part is written
  const uint64_t step_;                  // bytes
  uint64_t next_ = 0;                    // bytes written at which the next moment is noted
  std::optional<uint64_t> bytes_;
  size_t noted_ = 0;
  std::array<uint64_t, kSteps> free_{};  // of the last moments; the oldest is overwritten first
};

}  // namespace isozone
