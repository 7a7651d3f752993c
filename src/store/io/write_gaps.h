// WriteGaps: spreads the background writes of a group over time while users read.
//
// A die reads in a fraction of the time in which it programs, and serves both in order. So a read that meets a writer
// waits for the program under way and for those in the die's buffer, twenty times as long as the read itself takes. The
// host cannot see when a program ends, because a write completes when it is in the buffer. So the programs that a group
// is given are spread over time:
//
//   users read   There were kRun user reads, each at most a pause after the one before; it ends a pause after the last
//                one. Opening a table takes fewer reads, so a flush or compaction does not count as a reader. The
//                slower the flash, the later the next read of a user who had to wait; so a pause is half of the gap.
//   gap          While users read, a group starts a slice of a flush no sooner than a gap after the last one. Slices
//                are what the medium programs at once, and a gap is a number of times that programming a slice takes.
//   one by one   It starts a slice of any background write no sooner than 1 / kShortest of a gap after the last one.
//
// So, if the shortest gap is longer than a program, a read finds at most one program before it, and that for a known
// part of the time at most: program time / shortest gap. Rank and share decide who goes next (class_queues.h), so no
// class starves.
//
// A flush keeps the whole gap: if it falls behind, RocksDB slows the writer down, and less is written for a while.
// Compaction and GC only go one by one: they write several times as much as flushes, and if they fall behind,
// reads have more tables to search. Logs go one by one as well. Log writes that a thread waits for keep no gap, nor
// does metadata.
//
// Pure: takes times as arguments, and has no clock. Thread safety: any thread may use Readers; the owner of a Gate
// locks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "store/io/io_class.h"

namespace isozone {

class WriteGaps {
 public:
  // Returns the gap for `programs` programs of `slice` bytes, if a zone programs `bandwidth` bytes a second; at most a
  // second.
  static int64_t GapNs(uint32_t programs, uint64_t slice, uint64_t bandwidth) {
    const double program_s = static_cast<double>(slice) / static_cast<double>(bandwidth);
    return std::llround(std::min(programs * program_s, 1.0) * static_cast<double>(kSecondNs));
  }

  static constexpr uint32_t kRun = 16;
  static constexpr int64_t PauseNs(int64_t gap_ns) { return gap_ns / 2; }

  static constexpr int64_t kShortest = 16;  // the shortest gap is that of a flush divided by this

  // Returns whether writes of this class keep a gap. `durable`: a thread waits for the write to be durable.
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

  // Recognises that users read, on all groups together.
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

  // The gaps of one group. `gap_ns` is the gap of a flush.
  class Gate {
   public:
    // Returns when a slice of a class that keeps gaps may start, as far as is known now.
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
