// How groups are numbered while they are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/izg/zone_groups.h"

namespace isozone {

// Numbers the groups in the order of their first zones, and the channels in the order of their first groups. Every
// group must have a zone.
void NumberByFirstZone(ZoneGroups& groups);

// Puts the zones of the group `dropped` into `kept`, a lower number. The groups behind `dropped` move up.
void MergeGroups(std::vector<uint16_t>& group_of_zone, size_t kept, size_t dropped);

}  // namespace isozone
