// ClassQueues: which of the requests that wait for one independent zone group goes next, and whether one may go at all.
// Pure: it knows neither the device nor the time. IoEngine executes its decisions; its test runs it in virtual time.
//
//   order    The highest class that waits goes first (IoClass, highest first); within a class, the first to come. A
//            request that was overtaken between two of its slices goes on first within its class.
//   depth    At most `depth` requests are at the device. The classes from compaction on down may take all but one of
//            these places (but always one), so that a higher class finds a place at once.
//   shares   No class starves. While a class waits, it saves its share (in percent) of the cost of all requests that
//            go, and once it has saved the cost of its own next request, it goes first. So whenever a class waits, it
//            gets at least its share of what is served, to within two requests of each class. Costs are device time in
//            bytes read: a byte written takes about four times as long (ZenFS+, section II.C).
//   gaps     A request that keeps a gap (write_gaps.h) goes behind all others of its class, and can be left out while
//            these go on. A class in which only such requests wait saves nothing meanwhile, so that it does not come in
//            a burst later.
//
// In ZenFS+ (Algorithms 1 and 2), a flush takes whole groups, and compaction waits for them. Here, a flush only goes
// first, slice by slice, so that the capacity of a group that a flush leaves unused is not lost.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/status.h"
#include "store/io/io_class.h"

namespace isozone {

// The percentage of a group's device time that a class gets at least while it waits, by IoClass; 0: none.
struct IoShares {
  std::array<uint8_t, kIoClassCount> percent = {10, 10, 20, 15, 10, 10, 5, 5};
};

using IoClassSet = std::bitset<kIoClassCount>;

class ClassQueues {
 public:
  static constexpr uint64_t kWriteCost = 4;  // the cost of a byte written, in bytes read

  // A request that waits, as a node of a list. The owner keeps it until Next has returned it.
  struct Waiting {
    IoClass io_class = IoClass::kOther;
    uint64_t cost = 0;       // of its next slice
    bool keeps_gap = false;  // it may go only while its class need not keep a gap
    Waiting* behind = nullptr;
  };

  explicit ClassQueues(const IoShares& shares) : shares_(shares) {}

  void PushBack(Waiting& request);
  void PushFront(Waiting& request);
  // Removes and returns the request that goes next, from all classes (`background_too`) or only from those above the
  // background classes. Returns null if none may go. In the classes of `gaps`, requests that keep a gap are left out.
  Waiting* Next(bool background_too, IoClassSet gaps = {});
  // Returns the classes in which a request that keeps a gap waits.
  IoClassSet KeepingGaps() const;

  // Returns whether a class is one of those from compaction on down.
  static constexpr bool IsBackground(IoClass c) { return c >= IoClass::kCompactionRead; }
  // Returns how many of `depth` places background classes may take.
  static constexpr uint32_t BackgroundDepth(uint32_t depth) { return depth > 1 ? depth - 1 : 1; }

 private:
  struct Queue {
    Waiting* first = nullptr;
    Waiting* last = nullptr;
  };
  struct OfClass {
    Queue at_once;
    Queue keeping_gap;
    uint64_t saved = 0;  // cost times 100, since shares are percentages

    // Returns the queue that holds the next request; null if there is none. `gap` leaves out requests that keep a gap.
    Queue* Next(bool gap);
  };

  Queue& QueueOf(const Waiting& request) {
    OfClass& c = classes_[static_cast<size_t>(request.io_class)];
    return request.keeps_gap ? c.keeping_gap : c.at_once;
  }

  const IoShares shares_;
  std::array<OfClass, kIoClassCount> classes_;
};

}  // namespace isozone
