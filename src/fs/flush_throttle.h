// FlushThrottle: what a zone costs a flush. As space runs out flushes slow down smoothly: the less is free, the more zones
// must have become free, by compaction or collection, before a flush gets another one. So writers are slowed to the pace of
// what makes space, instead of running into a wall while it works.
//
//   price    0 where `below` percent are free, rising to kDearest zones where nothing is
//   credit   a zone for each that has become free, kMostCredit at most: what became free while there was plenty does not
//            pay for all that is written when there is little
//
// Thread safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace isozone {

class FlushThrottle {
 public:
  // About what compaction rewrites, and so frees, for a zone that is flushed.
  static constexpr double kDearest = 8;     // zones
  static constexpr double kMostCredit = 8;  // zones
  // Nobody waits longer for credit: Forgive.
  static constexpr int64_t kLongestWaitNs = 1'000 * kMillisecondNs;

  // 0: zones cost nothing.
  void SetBelow(double percent) { below_ = percent; }

  // A zone has become free.
  void Earn() { credit_ = std::min(credit_ + 1, kMostCredit); }
  // For a zone, with so much free. False: there is not enough credit.
  bool Pay(double free_percent) {
    const double price = free_percent < below_ ? kDearest * (1 - free_percent / below_) : 0;
    if (price > credit_) return false;
    credit_ -= price;
    return true;
  }
  // Enough credit for the dearest zone.
  void Forgive() { credit_ = kMostCredit; }

 private:
  double below_ = 0;   // percent
  double credit_ = 0;  // zones
};

}  // namespace isozone
