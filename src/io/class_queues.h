// ClassQueues: which of the requests that wait for one independent zone group goes next, and whether one may go at all.
// Pure: it neither knows the device nor the time; IoEngine executes it, its test drives it in virtual time.
//
//   order    The class of the highest rank that waits (IoClass, highest first); within a class first come, first
//            served. A request that was overtaken between two of its slices goes on first within its class.
//   depth    At most `depth` requests are at the device. The classes from compaction on down may take all but one of
//            these (but always one), so that what ranks higher finds a place at once.
//   shares   Nothing starves: a class that waits saves up its share (in percent) of all that goes meanwhile, and is
//            served first once it has saved the cost of what it waits with. So over any time in which it waits, it gets
//            at least its share of what is served, to within two requests of each class. Costs are device time in bytes
//            read: a byte written takes about four times as long (ZenFS+, section II.C).
//   gaps     What keeps a distance (write_gaps.h) goes behind all else of its class, and can be left out while the rest goes
//            on. A class of which nothing else waits saves up nothing meanwhile, so that it does not come in a burst later.
//
// ZenFS+ (Algorithms 1 and 2) gives a flush whole groups, and lets compaction wait for them; here the flush only goes
// first, slice by slice, so that what a flush leaves of a group is not lost.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "io/io_class.h"

namespace isozone {

// By IoClass: percent of the device time of a group that a class is given at least while it waits; 0: none.
struct IoShares {
  std::array<uint8_t, kIoClassCount> percent = {10, 10, 20, 15, 10, 10, 5, 5};

  // "flush:30,gc:10": those shares, and the defaults of all others. kInvalidArgument: an unknown class, or more than 100
  // in sum.
  static Result<IoShares> Parse(std::string_view text);
  std::string ToString() const;  // as Parse reads it, all classes
  bool operator==(const IoShares&) const = default;
};

using IoClassSet = std::bitset<kIoClassCount>;

class ClassQueues {
 public:
  static constexpr uint64_t kWriteCost = 4;  // of a byte written, in bytes read

  // What waits; the owner keeps it until Next returned it. Part of a list while it waits.
  struct Waiting {
    IoClass io_class = IoClass::kOther;
    uint64_t cost = 0;       // of what it does next
    bool keeps_gap = false;  // may go only when no gap is to be kept
    Waiting* behind = nullptr;
  };

  explicit ClassQueues(const IoShares& shares) : shares_(shares) {}

  void PushBack(Waiting& request);
  void PushFront(Waiting& request);
  // Takes out the request that goes next, of all (`background_too`) or of those above the background classes; null
  // where none waits. Of the classes in `gaps`, what keeps a gap is left out.
  Waiting* Next(bool background_too, IoClassSet gaps = {});
  // The classes of which a request that waits keeps a gap.
  IoClassSet KeepingGaps() const;

  // From compaction on down.
  static constexpr bool IsBackground(IoClass c) { return c >= IoClass::kCompactionRead; }
  // How many of `depth` places background classes may take.
  static constexpr uint32_t BackgroundDepth(uint32_t depth) { return depth > 1 ? depth - 1 : 1; }

 private:
  struct Queue {
    Waiting* first = nullptr;
    Waiting* last = nullptr;
  };
  struct OfClass {
    Queue at_once;
    Queue keeping_gap;
    uint64_t saved = 0;  // cost times 100

    // Where the next request is; null: nowhere.
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
