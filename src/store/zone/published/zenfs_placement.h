// The baseline: places data like ZenFS 2.1 (ZonedBlockDevice::AllocateIOZone, GetBestOpenZoneMatch).
//
// Among all partly written zones in which something lives, ZenFS looks for the lifetime nearest to the file's:
//   * a zone whose data lives longer than the file is a good match, the nearer the better;
//   * a zone of the same lifetime is a poor one: a new zone is better, if one more may be active;
//   * a zone whose data dies earlier is no match;
//   * a file without a lifetime (not set, none) matches zones of just that value, and well.
// If nothing matches, it opens the first empty zone, and if no more zones may be active, finishes the fullest first.
// A file holds one zone at a time, and repeats these steps when the zone is full.
//
// The differences from ZenFS are in the baseline's favour:
//   * resets and finishes are done in the background (store/space/zone_pool.h). Where ZenFS finishes a zone first, the
//     data goes to the longest-lived idle zone that has room, while the finish makes room for a later zone; a file
//     waits only if no zone has room. Logs have zones of their own, from a reserve;
//   * among equally good zones the fullest with enough room is taken, where ZenFS takes the last one of the device;
//   * if no zone is empty, any zone with room is used before the file system reports that it is full.
// ZenfsGc (zenfs_gc.h) is the baseline's collector.
#pragma once

#include <string_view>

#include "store/zone/placement_policy.h"

namespace isozone {

class ZenfsPlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "zenfs";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return false; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
