#include "base/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace isozone {

int Histogram::BucketOf(uint64_t value) {
  if (value < (uint64_t{1} << kSubBucketBits)) return static_cast<int>(value);
  const int exponent = 63 - std::countl_zero(value);
  const int shift = exponent - kSubBucketBits;
  return ((shift + 1) << kSubBucketBits) + static_cast<int>((value >> shift) - (uint64_t{1} << kSubBucketBits));
}

uint64_t Histogram::UpperBoundOf(int bucket) {
  if (bucket < (1 << kSubBucketBits)) return static_cast<uint64_t>(bucket);
  const int shift = (bucket >> kSubBucketBits) - 1;
  const uint64_t sub = static_cast<uint64_t>(bucket & ((1 << kSubBucketBits) - 1)) + (uint64_t{1} << kSubBucketBits);
  return ((sub + 1) << shift) - 1;
}

void Histogram::Add(uint64_t value) {
  buckets_[static_cast<size_t>(BucketOf(value))].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  uint64_t seen = max_.load(std::memory_order_relaxed);
  while (value > seen && !max_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

uint64_t Histogram::Count() const {
  uint64_t count = 0;
  for (const auto& bucket : buckets_) count += bucket.load(std::memory_order_relaxed);
  return count;
}

Histogram::Snapshot Histogram::Take() const {
  Snapshot s;
  s.buckets.resize(kBuckets);
  for (size_t i = 0; i < kBuckets; ++i) {
    s.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    s.count += s.buckets[i];
  }
  s.sum = sum_.load(std::memory_order_relaxed);
  s.max = max_.load(std::memory_order_relaxed);
  if (s.count == 0) s.buckets.clear();
  return s;
}

void Histogram::Clear() {
  for (auto& b : buckets_) b.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  max_.store(0, std::memory_order_relaxed);
}

uint64_t Histogram::Snapshot::Percentile(double percent) const {
  if (count == 0) return 0;
  const auto rank =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(percent / 100.0 * static_cast<double>(count))));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen >= rank) return std::min(UpperBoundOf(static_cast<int>(i)), max);
  }
  return max;
}

}  // namespace isozone
