// The two kinds of GC of ZenFS+ (section IV.D).
//
//   full     below 10 % free, zones of lower levels first, of each level those with the least valid data, until 10 %
//            are free. Dead zones wait for their turn among them
//   zenfs+   the full GC and the minor GC: a zone without valid data is reset without waiting for the full GC. The
//            paper looks for such zones every 10 s, a short time on its 2 TB. Here they are reset when they die, so
//            that small devices behave like large ones
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "store/zone/gc_order.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

class ZenfsPlusGc : public GcScheme {
 public:
  ZenfsPlusGc(std::optional<uint32_t> start_percent, bool minor) : start_(start_percent.value_or(10)), minor_(minor) {}
  std::string_view name() const override { return minor_ ? "zenfs+" : "full"; }
  int64_t interval_ns() const override { return kSecondNs / 10; }
  bool resets_at_once() const override { return minor_; }
  bool decides_again() const override { return true; }
  bool Due(const GcSpace& space) const override { return space.free_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    return EnoughBy(candidates, KeyOf, Missing(space, start_));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, KeyOf));
  }

 private:
  static std::pair<int, uint64_t> KeyOf(const GcCandidate& c) { return {LevelOf(c), c.valid}; }
  const double start_;  // fullGC_trigger
  const bool minor_;
};

}  // namespace isozone
