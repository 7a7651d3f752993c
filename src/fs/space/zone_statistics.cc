#include "fs/space/zone_statistics.h"

#include "fs/space/zone_executor.h"

namespace isozone {

void PutSpace(const SpaceInfo& space, PageFigures& figures) {
  figures.capacity = space.capacity;
  figures.live = space.live;
  figures.dead = space.dead;
  figures.metadata = space.metadata;
  figures.free = space.free;
  figures.reserved = space.reserved;
  figures.zones = space.zones;
  figures.empty_zones = space.empty_zones;
  figures.active_zones = space.active_zones;
  figures.full_zones = space.full_zones;
  figures.unusable_zones = space.unusable_zones;
}

void ZoneStatistics::NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones) {
  executor_.deletion_delays.Deleted(lifetime, zones, executor_.clock.NowNs());
}

void ZoneStatistics::Fill(PageFigures& figures) const {
  const MutexLock lock(executor_.mu);
  PutSpace(executor_.Space(), figures);
  const ActiveBudget& active = executor_.allocator.ledger().active;
  figures.active_metadata = active.used(BudgetClass::kMetadata);
  figures.active_log = active.used(BudgetClass::kLog);
  figures.active_gc = active.used(BudgetClass::kGc);
  figures.active_data = active.used(BudgetClass::kData);
  figures.active_others = active.withheld();
  const AllocatorStats& stats = executor_.allocator.ledger().stats;
  figures.zone_resets = stats.resets;
  figures.zone_finishes = stats.finishes;
  figures.zone_waits = executor_.waits;
  figures.mixed_classes = stats.mixed_classes;
  figures.mixed_cohorts = stats.mixed_cohorts;
  figures.gc_space_waits = stats.space_waits;
  figures.reset_written_percent = executor_.allocator.upkeep().reset_written_percent().Sum();
}

const Histogram& ZoneStatistics::zone_waits() const { return executor_.wait_ns; }
const Histogram& ZoneStatistics::pace_waits() const { return executor_.pace_ns; }

}  // namespace isozone
