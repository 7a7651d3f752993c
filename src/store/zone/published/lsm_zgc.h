// LSM_ZGC (section 3): zones of the lowest utilisation first. It reads segment by segment (segment_plan.h), and keeps
// survivors apart by heat. The paper leaves the trigger to the user: `gc_start` percent of free space.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/zone/gc_order.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/heat.h"

namespace isozone {

class LsmZgc : public GcScheme {
 public:
  explicit LsmZgc(std::optional<uint32_t> start_percent) : start_(start_percent.value_or(10)) {}
  std::string_view name() const override { return "lsm-zgc"; }
  int64_t interval_ns() const override { return kSecondNs; }
  bool reads_segments() const override { return true; }
  bool decides_again() const override { return true; }
  ZoneHeat Survivor(ZoneHeat victim, bool cold_segment) const override { return SurvivorHeat(victim, cold_segment); }
  bool Due(const GcSpace& space) const override { return space.free_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    return EnoughBy(candidates, &GcCandidate::utilisation, Missing(space, start_));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, &GcCandidate::utilisation));
  }

 private:
  const double start_;
};

}  // namespace isozone
