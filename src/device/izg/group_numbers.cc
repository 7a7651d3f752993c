#include "device/izg/group_numbers.h"

#include <map>
#include <utility>
#include <vector>

namespace isozone {

void NumberByFirstZone(ZoneGroups& groups) {
  std::vector<uint16_t> number(groups.group_count(), ZoneGroups::kUnknown);
  std::vector<uint16_t> old_channels;  // by new number
  for (uint16_t& group : groups.group_of_zone) {
    if (group == ZoneGroups::kUnknown) continue;
    if (number[group] == ZoneGroups::kUnknown) {
      number[group] = static_cast<uint16_t>(old_channels.size());
      old_channels.push_back(groups.channel_of_group[group]);
    }
    group = number[group];
  }
  std::map<uint16_t, uint16_t> channel_number;
  for (uint16_t& channel : old_channels) {
    channel = channel_number.emplace(channel, static_cast<uint16_t>(channel_number.size())).first->second;
  }
  groups.channel_of_group = std::move(old_channels);
}

void MergeGroups(std::vector<uint16_t>& group_of_zone, size_t kept, size_t dropped) {
  for (uint16_t& group : group_of_zone) {
    if (group == ZoneGroups::kUnknown) continue;
    if (group == dropped) group = static_cast<uint16_t>(kept);
    if (group > dropped) --group;
  }
}

}  // namespace isozone
