// Lifetime (section 4.2): looks every second. Below 25 % of empty zones, it takes N = Z_t / (1 + Z_e) victims from the
// first L = 4 / (1 + E / 5) of four queues by valid data, where E is the percentage of empty zones. In a queue, zones
// with the least valid data come first, then those with the longest lifetime. `lifetime-one-victim` is what the paper
// compares these two equations with: one victim at a time, of any queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "store/zone/gc_order.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

class LifetimeGc : public GcScheme {
 public:
  LifetimeGc(std::optional<uint32_t> start_percent, bool dynamic)
      : start_(start_percent.value_or(25)), dynamic_(dynamic) {}
  std::string_view name() const override { return dynamic_ ? "lifetime" : "lifetime-one-victim"; }
  int64_t interval_ns() const override { return kSecondNs; }
  bool Due(const GcSpace& space) const override { return space.empty_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double empty = space.empty_percent();
    const uint32_t most = dynamic_ ? std::max(1U, space.zones / (1 + space.empty_zones)) : 1;           // equation 1
    const int deepest = dynamic_ ? std::max(1, static_cast<int>(kQueues / (1 + empty / 5))) : kQueues;  // equation 2
    std::vector<ZoneId> victims;
    for (const GcCandidate& c : Sorted(candidates)) {
      if (QueueOf(c) <= deepest && victims.size() < most) victims.push_back(c.zone);
    }
    return victims;
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(Sorted(candidates));
  }

 private:
  static constexpr int kQueues = 4;  // L_max
  // Returns the queue of a candidate; 1 has the least valid data.
  static int QueueOf(const GcCandidate& c) {
    return std::min(kQueues, 1 + static_cast<int>(c.utilisation() * kQueues));
  }
  static std::vector<GcCandidate> Sorted(std::span<const GcCandidate> candidates) {
    return SortedBy(candidates, [](const GcCandidate& c) {
      return std::make_tuple(QueueOf(c), c.valid, -static_cast<int>(c.data.lifetime));
    });
  }
  const double start_;
  const bool dynamic_;
};

}  // namespace isozone
