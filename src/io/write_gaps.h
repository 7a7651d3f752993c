// WriteGaps: while users read, a group is not given one background write straight after the other.
//
// A die reads in a fraction of the time in which it programs, and serves both in order: a read that meets a writer waits
// for the program under way and for those in the die's buffer, twenty times as long as it takes itself. The host cannot
// see when a program ends, for a write is complete when it is in the buffer. So what a group is given to program is
// spread over time:
//
//   users read   kRun user reads, each at most a pause after the one before; until a pause after the last one. Opening a
//                table takes fewer reads, so that a flush or compaction does not count as a reader. The slower the
//                flash, the later the next read of somebody who had to wait: so a pause is half of the gap.
//   gap          while users read, a group starts a slice of a flush no sooner than a gap after the last one. Slices are
//                what the medium programs at once, and a gap is told in what a slice takes to be programmed.
//   one by one   and a slice of any background write no sooner than kShortest of a gap after the last of them.
//
// So, where that is longer than a program, a read finds one of these before it at most, and that for a known part of all
// times at most: program time / shortest gap. Who goes next is up to rank and share (class_queues.h), so none starves.
//
// A flush keeps the whole gap: where it falls behind, RocksDB slows the writer down, and less is written for a while.
// Compaction and collection go one by one only: they write several times what is flushed, and where they fall behind,
// reads have more tables to search. So do logs; but those that somebody waits for keep no gap, nor does metadata.
//
// Pure: takes times, and has no clock. Thread safety: Readers is for any thread; Gate is its owner's to lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "io/io_class.h"

namespace isozone {

class WriteGaps {
 public:
  // A gap of so many programs of `slice` bytes, of which a zone takes `bandwidth` a second; at most a second.
  static int64_t GapNs(uint32_t programs, uint64_t slice, uint64_t bandwidth) {
    const double program_s = static_cast<double>(slice) / static_cast<double>(bandwidth);
    return std::llround(std::min(programs * program_s, 1.0) * static_cast<double>(kSecondNs));
  }

  static constexpr uint32_t kRun = 16;
  static constexpr int64_t PauseNs(int64_t gap_ns) { return gap_ns / 2; }

  static constexpr int64_t kShortest = 16;  // by what the shortest gap is less than that of a flush

  // Of writes; `durable`: somebody waits for it to be.
  static constexpr bool Keeps(IoClass c, bool durable) {
    switch (c) {
      case IoClass::kFlush:
      case IoClass::kCompactionWrite:
      case IoClass::kGc:
        return true;
      case IoClass::kWal:
        return !durable;
      default:
        return false;
    }
  }

  // The reads of users, on all groups.
  class Readers {
   public:
    explicit Readers(int64_t gap_ns) : pause_ns_(PauseNs(gap_ns)) {}

    void Note(int64_t now_ns) {
      const int64_t waited_ns = now_ns - last_ns_.exchange(now_ns, std::memory_order_relaxed);
      const uint32_t run = run_.load(std::memory_order_relaxed);
      if (waited_ns > pause_ns_) {
        run_.store(1, std::memory_order_relaxed);
      } else if (run < kRun) {
        run_.store(run + 1, std::memory_order_relaxed);
      }
    }
    bool Active(int64_t now_ns) const {
      return run_.load(std::memory_order_relaxed) >= kRun &&
             now_ns - last_ns_.load(std::memory_order_relaxed) <= pause_ns_;
    }

   private:
    const int64_t pause_ns_;
    std::atomic<int64_t> last_ns_{INT64_MIN / 2};
    std::atomic<uint32_t> run_{0};  // reads in a row, up to kRun
  };

  // Of one group. `gap_ns`: of a flush.
  class Gate {
   public:
    // When a slice of a class that keeps gaps may start, as it looks now.
    int64_t OpensAt(IoClass c, int64_t gap_ns) const {
      const int64_t one_by_one_ns = last_ns_ + gap_ns / kShortest;
      return c == IoClass::kFlush ? std::max(one_by_one_ns, last_flush_ns_ + gap_ns) : one_by_one_ns;
    }
    void OnStart(IoClass c, int64_t now_ns) {
      last_ns_ = now_ns;
      if (c == IoClass::kFlush) last_flush_ns_ = now_ns;
    }

   private:
    static constexpr int64_t kNever = INT64_MIN / 2;
    int64_t last_ns_ = kNever;  // of any class
    int64_t last_flush_ns_ = kNever;
  };
};

}  // namespace isozone
