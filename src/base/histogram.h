// Latency histogram: log-linear buckets, 32 to each power of two, so a percentile is off by at most 3.2 %.
//
// Thread safety: any thread may call any method. Add is wait-free. A Snapshot may miss values that are being added at
// the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace isozone {

class Histogram {
 public:
  static constexpr int kSubBucketBits = 5;
  static constexpr int kBuckets = (64 - kSubBucketBits + 1) << kSubBucketBits;

  struct Snapshot {
    uint64_t count = 0;
    uint64_t sum = 0;
    uint64_t max = 0;
    std::vector<uint64_t> buckets;  // kBuckets long, or empty when count is 0

    double Mean() const { return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count); }
    // Returns the smallest value that at least `percent` (0..100) of the values do not exceed, to bucket precision; 0
    // if empty.
    uint64_t Percentile(double percent) const;
  };

  void Add(uint64_t value);
  Snapshot Take() const;
  void Clear();

  // Single figures, for a caller that copies them elsewhere without a Snapshot. `bucket` is in [0, kBuckets).
  uint64_t CountIn(int bucket) const { return buckets_[static_cast<size_t>(bucket)].load(std::memory_order_relaxed); }
  uint64_t Count() const;
  uint64_t Sum() const { return sum_.load(std::memory_order_relaxed); }
  uint64_t Max() const { return max_.load(std::memory_order_relaxed); }
  // Returns the greatest value that the bucket counts.
  static uint64_t UpperBoundOf(int bucket);

 private:
  static int BucketOf(uint64_t value);

  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> max_{0};
};

}  // namespace isozone
