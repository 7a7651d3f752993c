// Level-dedicated zones (LL-compaction, section 3, rule 1; "level separation" of its baselines): a zone holds tables of
// one level of the LSM tree, so that what is compacted together dies together.
//
//   1. a partly written zone of exactly the file's level, the fullest with room; for a file whose level is not known, a
//      zone of its lifetime whose level is not known either
//   2. an empty zone
//   3. if no more zones may be active, or none is empty: the idle zone with room whose expected death is closest
//      (ClosestDeathIdle), while the fullest is finished in the background
//
// A file is written to one zone at a time, as in the papers' systems.
#pragma once

#include <string_view>

#include "store/zone/placement_policy.h"

namespace isozone {

class LevelPlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "level";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return false; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
