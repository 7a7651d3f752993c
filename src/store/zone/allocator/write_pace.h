// WritePace: how fast users may write while space is short. What makes space, compaction and GC, first takes
// space for what it writes. So writers may go on only as fast as it does: they pay for each byte with bytes that it has
// written.
//
//   price    of a byte: 0 where `below` percent are free, rising with the square of what is missing to kDearest where
//            kNothing percent are. Where writers and makers of space keep the balance, the price is just what
//            compaction and GC write for a byte of the user: nobody has to know how much that is.
//   credit   the bytes that were written, kMostCredit at most: what was done in time of plenty does not pay for later
//   logged   bytes that were paid for when they went to the log are not paid for again when they are flushed
//
// A put so waits a little for each record, instead of long for a whole memtable in the end.
//
// Thread safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace isozone {

class WritePace {
 public:
  static constexpr double kDearest = 32;
  static constexpr double kNothing = 1;                            // percent
  static constexpr double kMostCredit = 16.0 * kMiB;               // bytes
  static constexpr double kMostLogged = 1024.0 * kMiB;             // bytes
  static constexpr int64_t kLongestWaitNs = 100 * kMillisecondNs;  // then a write goes on unpaid

  // Returns the price of a byte with so much free, where writing costs something below so much; 0: never.
  static double PriceOf(double free_percent, double below_percent) {
    if (free_percent >= below_percent) return 0;
    const double missing = std::min(1.0, (below_percent - free_percent) / std::max(1.0, below_percent - kNothing));
    return kDearest * missing * missing;
  }

  // Notes that so many bytes were written to make space.
  void Earn(uint64_t bytes) { credit_ = std::min(credit_ + static_cast<double>(bytes), kMostCredit); }
  // Pays for so many bytes, each at `price`. Returns false if there is not enough credit. A write that costs more than
  // can be saved up costs all that can be.
  bool Pay(uint64_t bytes, double price) {
    const double cost = std::min(static_cast<double>(bytes) * price, kMostCredit);
    if (cost > credit_) return false;
    credit_ -= cost;
    return true;
  }

  void NoteLogged(uint64_t bytes) { logged_ = std::min(logged_ + static_cast<double>(bytes), kMostLogged); }
  // Returns how many of so many bytes that are flushed no log has had.
  uint64_t TakeUnlogged(uint64_t bytes) {
    const double unlogged = std::max(0.0, static_cast<double>(bytes) - logged_);
    logged_ -= static_cast<double>(bytes) - unlogged;
    return static_cast<uint64_t>(unlogged);
  }

 private:
  double credit_ = 0;  // bytes
  double logged_ = 0;  // bytes
};

}  // namespace isozone
