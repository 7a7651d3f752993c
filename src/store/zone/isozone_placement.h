// Isozone's own policy. Files are striped over zones of different independent zone groups (ZenFS+, section IV.B). Each
// zone holds files of one lifetime and one level of the LSM tree (LL, section 3). Groups with more urgent writers are
// avoided (group_choice.h). Survivors of GC have zones of their own (heat.h).
//
//   1. an idle zone of the same class, in the best group that any idle or empty zone is in: files of one class share
//      their stripe sets, so zones fill up
//   2. an empty zone in that group
//   3. if no more zones may be active: the idle zone with room whose expected death is closest (ClosestDeathIdle). It
//      goes on so until a zone is full, or so nearly full that finishing it costs little
//   4. if no zone is empty: the same, since mixing classes is better than no space
//
// What a writer said beforehand comes first (cohort.h):
//
//   cohort         A file of a cohort goes to an idle zone that the cohort has begun. If the cohort has zones of its
//                  own, an empty zone is next. Only then the steps above follow. Step 1 leaves out the zones that are
//                  kept from the file; so do steps 3 and 4 as long as there is another zone.
//   expected size  Step 1 prefers idle zones that have room for the whole file. If only busier groups have one, an
//                  empty zone takes the file whole. If no idle zone has the room, the file may be split as any other.
//
// A file that widens its stripe set takes 1 or 2, or does not widen.
#pragma once

#include <string_view>

#include "store/zone/placement_policy.h"

namespace isozone {

class IsozonePlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "isozone";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return true; }
  bool heeds_cohorts() const override { return true; }
  uint32_t most_lost_percent() const override { return 2; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
