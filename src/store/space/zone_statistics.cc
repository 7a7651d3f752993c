#include "store/space/zone_statistics.h"

#include "store/space/zone_executor.h"

namespace isozone {

void ZoneStatistics::NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones) {
  executor_.deletion_delays.Deleted(lifetime, zones, executor_.clock.NowNs());
}

void ZoneStatistics::Take(AllocatorStats& stats, SpaceInfo& space, ActiveZones& active) const {
  const MutexLock lock(executor_.mu);
  stats = executor_.allocator.ledger().stats;
  space = executor_.Space();
  const ActiveBudget& budget = executor_.allocator.ledger().active;
  active = {budget.used(BudgetClass::kMetadata), budget.used(BudgetClass::kLog), budget.used(BudgetClass::kGc),
            budget.used(BudgetClass::kData), budget.withheld()};
}

const Histogram& ZoneStatistics::zone_waits() const { return executor_.wait_ns; }
const Histogram& ZoneStatistics::pace_waits() const { return executor_.pace_ns; }

}  // namespace isozone
