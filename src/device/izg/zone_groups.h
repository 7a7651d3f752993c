// Which zones slow one another: the result of identification (identify.h), stored with the file system and used by
// placement. ZenFS+ (section III.A) calls a set of zones that share a parallel unit an independent zone group, IZG.
#pragma once

#include <cstdint>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

// There are two levels. Zones of one group share a die: if both are used at a time, each is about half as fast. Groups
// of one channel share the way to the host: they interfere weakly, and only under load.
//
// Thread safety: a plain value.
struct ZoneGroups {
  static constexpr uint16_t kUnknown = UINT16_MAX;  // the zone was offline, or its group could not be found
  static constexpr uint32_t kMostGroups = 65534;

  std::vector<uint16_t> group_of_zone;      // by zone: below group_count(), or kUnknown
  std::vector<uint8_t> confidence_percent;  // by zone, 0..100: how sure its group is
  std::vector<uint16_t> channel_of_group;   // by group: channel groups count from 0
  // Bytes a second that the medium programs in one zone once the buffer of the device is full. 0: not measured, since
  // no zone could be written.
  uint64_t zone_bandwidth = 0;

  // Groups are numbered in the order of their first zones. 0: no zone slows another, so each is a group of its own.
  uint32_t group_count() const { return static_cast<uint32_t>(channel_of_group.size()); }
  bool operator==(const ZoneGroups&) const = default;
};

}  // namespace isozone
