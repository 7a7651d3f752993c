// The baseline: places data as ZenFS 2.1 does (ZonedBlockDevice::AllocateIOZone, GetBestOpenZoneMatch).
//
// Among all partly written zones in which something lives, ZenFS looks for the lifetime nearest to the file's:
//   * a zone whose data lives longer than the file is a good match, the nearer the better;
//   * a zone of the same lifetime is a poor one: a new zone is better, if one more may be active;
//   * a zone whose data dies earlier is no match;
//   * a file without a lifetime (not set, none) matches zones of just that value, and well.
// Where nothing matches, it opens the first empty zone, and if no more zones may be active, finishes the fullest first.
// A file holds one zone at a time, and returns to this ladder when the zone is full.
//
// Where this differs from ZenFS, it is in the baseline's favour:
//   * resets and finishes are done in the background (fs/space/zone_pool.h): where ZenFS finishes a zone first, the
//     data goes to the longest-lived idle zone that has room, and the finish makes way for the next; only where no zone
//     has room is there a wait. Logs have zones of their own, out of a reserve;
//   * among equally good zones the fullest with enough room is taken, where ZenFS takes the last in the device;
//   * where no zone is empty, any zone with room is used before the file system reports that it is full.
// What its collector does: ZenfsGc in gc_scheme.cc.
#pragma once

#include <string_view>

#include "zone/placement_policy.h"

namespace isozone {

class ZenfsPlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "zenfs";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return false; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
