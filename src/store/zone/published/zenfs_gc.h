// The collector of ZenFS 2.1 (ZenFS::GCWorker), without improvements, since it stands for the baseline. It looks every
// 10 s. With less than 20 % free, it collects full zones whose garbage is above 100 - 3 x (20 - free) percent. It moves
// tables only, into zones that are partly written. No writer waits for it. docs/architecture.md lists the differences.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/zone/gc_order.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

class ZenfsGc : public GcScheme {
 public:
  explicit ZenfsGc(std::optional<uint32_t> start_percent) : start_(start_percent.value_or(20)) {}
  std::string_view name() const override { return "zenfs"; }
  int64_t interval_ns() const override { return 10 * kSecondNs; }
  bool writers_wait() const override { return false; }
  bool confined() const override { return true; }
  bool Due(const GcSpace& space) const override { return space.free_percent() <= start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double threshold = 100 - kSlope * (start_ - space.free_percent());
    std::vector<GcCandidate> chosen;
    for (const GcCandidate& c : candidates) {
      if (c.full && Garbage(c) > threshold) chosen.push_back(c);
    }
    return ZonesOf(SortedBy(chosen, [](const GcCandidate&) { return 0; }));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, [](const GcCandidate&) { return 0; }));
  }

 private:
  static constexpr double kSlope = 3;  // GC_SLOPE
  static double Garbage(const GcCandidate& c) { return 100 - 100 * c.utilisation(); }
  const double start_;  // GC_START_LEVEL
};

}  // namespace isozone
