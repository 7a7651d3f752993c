// Isozone's own policy. Files are striped over zones of different independent zone groups (ZenFS+, section IV.B). Each
// zone holds files of one lifetime and one level of the LSM tree (LL, section 3). Groups with more urgent writers are
// avoided (group_choice.h). Survivors of a collection have zones of their own (heat.h).
//
//   1. an idle zone of the same class, in the best group that any idle or empty zone is in: files of one class share
//      their stripe sets, so zones fill up
//   2. an empty zone in that group
//   3. if no more zones may be active: the idle zone with room whose expected death is closest (ClosestDeathIdle),
//      while the fullest is finished in the background
//   4. if no zone is empty: the same, since mixing classes is better than no space
//
// A file that widens its stripe set takes 1 or 2, or does not widen.
#pragma once

#include <string_view>

#include "zone/placement_policy.h"

namespace isozone {

class IsozonePlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "isozone";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return true; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
