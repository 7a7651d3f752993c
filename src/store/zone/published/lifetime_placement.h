// Lifetime-only placement (Efficient Key-Value Data Placement for ZNS SSD, 2021, section 4): a zone holds only files of
// one lifetime, so that all of it dies at about the same time.
//
//   1. a partly written zone of exactly the file's lifetime, the fullest with room
//   2. an empty zone
//   3. if no more zones may be active: the fullest is finished first, and the file waits for that
//
// If there is neither a zone of the file's lifetime nor an empty one, there is no space, whatever room other zones
// have.
#pragma once

#include <string_view>

#include "store/zone/placement_policy.h"

namespace isozone {

class LifetimePlacement : public PlacementPolicy {
 public:
  static constexpr std::string_view kName = "lifetime";
  std::string_view name() const override { return kName; }
  bool parallel() const override { return false; }
  Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const override;
};

}  // namespace isozone
