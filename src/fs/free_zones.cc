#include "fs/free_zones.h"

#include <set>

#include "fs/journal.h"
#include "fs/superblock.h"

namespace isozone {
namespace {

std::set<ZoneId> ZonesOf(const RecoveredMetadata& metadata) {
  std::set<ZoneId> zones;
  for (const auto& [zone, use] : metadata.zones) zones.insert(zone);
  for (const Inode* inode = metadata.state.Next(InodeId(0)); inode != nullptr; inode = metadata.state.Next(inode->id)) {
    // A region is named before it is written. (Extents are written before they are named.)
    for (const LogRegion& region : inode->regions) zones.insert(region.zone);
  }
  return zones;
}

}  // namespace

Result<std::vector<ZoneId>> FindFreeZones(ZonedDevice& device) {
  std::set<ZoneId> owned;
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  if (content != DeviceContent::kEmpty) {
    ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata metadata, RecoverMetadata(device));
    owned = ZonesOf(metadata);
  }
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  std::vector<ZoneId> free;
  for (const ZoneDescriptor& zone : report) {
    if (zone.state == ZoneState::kEmpty && !owned.contains(zone.zone)) free.push_back(zone.zone);
  }
  return free;
}

}  // namespace isozone
