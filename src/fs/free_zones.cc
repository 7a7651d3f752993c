#include "fs/free_zones.h"

#include <set>

#include "fs/journal.h"
#include "fs/metadata_io.h"
#include "fs/recovery.h"
#include "fs/superblock.h"

namespace isozone {

Result<std::vector<ZoneId>> FreeUpZones(ZonedDevice& device) {
  std::set<ZoneId> owned;
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  const bool has_owner = content != DeviceContent::kEmpty;
  if (has_owner) {
    ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata metadata, RecoverMetadata(device));
    owned = NamedZones(device.geometry(), metadata.state, metadata.zones);
    ISOZONE_RETURN_IF_ERROR(FlushDevice(device));  // what says that the others are dead
  }
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  std::vector<ZoneId> free;
  for (const ZoneDescriptor& zone : report) {
    if (owned.contains(zone.zone) || zone.state == ZoneState::kReadOnly || zone.state == ZoneState::kOffline) continue;
    if (zone.state != ZoneState::kEmpty) {
      if (!has_owner) continue;
      ISOZONE_RETURN_IF_ERROR(ManageZone(device, DeviceOp::kReset, zone.zone));
    }
    free.push_back(zone.zone);
  }
  return free;
}

}  // namespace isozone
