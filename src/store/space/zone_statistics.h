// ZoneStatistics: what a pool of zones counts for statistics alone, and what it tells the statistics page of its mount,
// beside what it tells as it happens.
//
// Thread safety: any thread.
#pragma once

#include <span>

#include "base/histogram.h"
#include "device/zoned_device.h"
#include "store/file_system.h"
#include "store/zone/allocator/zone_ledger.h"
#include "store/zone/lifetime.h"

namespace isozone {

class ZoneExecutor;

// Active zones, by who has them.
struct ActiveZones {
  uint64_t metadata = 0;
  uint64_t log = 0;
  uint64_t gc = 0;
  uint64_t data = 0;
  uint64_t others = 0;  // withheld, because somebody else has them
};

class ZoneStatistics {
 public:
  // `executor` outlives this.
  explicit ZoneStatistics(ZoneExecutor& executor) : executor_(executor) {}

  // A file has lost its last name, and lay in these zones; to be called before ZonePool::RemoveLive.
  void NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones);

  // As of one moment.
  void Take(AllocatorStats& stats, SpaceInfo& space, ActiveZones& active) const;
  // Of those who asked for a zone, and of users who were slowed, in ns.
  const Histogram& zone_waits() const;
  const Histogram& pace_waits() const;

 private:
  ZoneExecutor& executor_;
};

}  // namespace isozone
