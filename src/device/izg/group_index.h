// GroupIndex: the zones, sorted by the group that placement and scheduling assign to them. Whether zone groups were
// measured or not, it has a partition of the zones:
//
//   measured groups                   the groups as measured, and one more for zones whose group is unknown, if any
//   measured, no zone slows another   kIndependentGroups groups that take the zones in turn: any partition would do
//   never measured                    one group
//
// If the bandwidth of a zone was never measured, the index assumes one.
//
// Thread safety: a plain value; immutable once constructed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/units.h"
#include "device/izg/zone_groups.h"
#include "device/zoned_device.h"

namespace isozone {

class GroupIndex {
 public:
  static constexpr uint32_t kIndependentGroups = 64;
  // Bytes a second of flash that programs 192 KiB in 2 ms.
  static constexpr uint64_t kAssumedBandwidth = 96 * kMiB;

  // `groups` covers `zone_count` zones, or is null if they were never measured.
  GroupIndex(uint32_t zone_count, const ZoneGroups* groups)
      : kind_(groups == nullptr            ? Kind::kNotMeasured
              : groups->group_count() == 0 ? Kind::kIndependentZones
                                           : Kind::kMeasured),
        group_(zone_count, 0) {
    if (groups != nullptr && groups->group_count() > 0) {
      Take(*groups);
    } else if (groups != nullptr) {
      count_ = std::clamp(zone_count, 1U, kIndependentGroups);
      for (uint32_t zone = 0; zone < zone_count; ++zone) group_[zone] = zone % count_;
    }
    if (groups != nullptr && groups->zone_bandwidth > 0) zone_bandwidth_ = groups->zone_bandwidth;
    SortZones();
  }

  enum class Kind : uint8_t {
    kNotMeasured,       // nothing is known: one group
    kMeasured,          // the zones of a group slow one another
    kIndependentZones,  // no zone slows another: the groups are arbitrary
  };
  Kind kind() const { return kind_; }
  uint32_t count() const { return count_; }
  // Returns the bytes a second that the medium programs of one zone.
  uint64_t zone_bandwidth() const { return zone_bandwidth_; }
  // Returns how many units of flash that work in parallel a zone spans, estimated from its bandwidth; at least 1.
  uint32_t zone_width() const {
    const double width = static_cast<double>(zone_bandwidth_) / static_cast<double>(kAssumedBandwidth);
    return static_cast<uint32_t>(std::clamp<long>(std::lround(width), 1, kMostWidth));
  }
  uint32_t of(ZoneId zone) const { return group_[zone.value()]; }

  // Every zone has a rank: its position among all zones, sorted by group and id. The zones of a group have the ranks
  // [first_rank(group), first_rank(group + 1)).
  uint32_t rank(ZoneId zone) const { return rank_[zone.value()]; }
  ZoneId at_rank(uint32_t rank) const { return zone_[rank]; }
  uint32_t first_rank(uint32_t group) const { return first_rank_[group]; }

 private:
  static constexpr long kMostWidth = 1024;

  void Take(const ZoneGroups& groups) {
    count_ = groups.group_count();
    bool unknown = false;
    for (uint32_t zone = 0; zone < group_.size(); ++zone) {
      const uint16_t group = groups.group_of_zone[zone];
      unknown |= group == ZoneGroups::kUnknown;
      group_[zone] = group == ZoneGroups::kUnknown ? count_ : group;
    }
    count_ += unknown ? 1 : 0;
  }

  void SortZones() {
    first_rank_.assign(count_ + 1, 0);
    for (const uint32_t group : group_) ++first_rank_[group + 1];
    std::partial_sum(first_rank_.begin(), first_rank_.end(), first_rank_.begin());
    std::vector<uint32_t> next(first_rank_.begin(), first_rank_.end() - 1);
    rank_.resize(group_.size());
    zone_.resize(group_.size());
    for (uint32_t zone = 0; zone < group_.size(); ++zone) {
      rank_[zone] = next[group_[zone]]++;
      zone_[rank_[zone]] = ZoneId(zone);
    }
  }

  const Kind kind_;
  uint32_t count_ = 1;
  uint64_t zone_bandwidth_ = kAssumedBandwidth;
  std::vector<uint32_t> group_;       // by zone
  std::vector<uint32_t> rank_;        // by zone
  std::vector<ZoneId> zone_;          // by rank
  std::vector<uint32_t> first_rank_;  // by group, and one behind the last
};

}  // namespace isozone
