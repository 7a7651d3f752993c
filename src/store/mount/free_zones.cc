#include "store/mount/free_zones.h"

#include <algorithm>
#include <map>

#include "store/metadata/metadata_io.h"
#include "store/metadata/recovery.h"
#include "store/metadata/superblock.h"
#include "store/pins/pinning_readers.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {

Result<FreedZones> FreeUpZones(ZonedDevice& device) {
  std::map<ZoneId, uint64_t> named;
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  const bool has_owner = content != DeviceContent::kEmpty;
  if (has_owner) {
    ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata metadata, RecoverMetadata(device));
    ISOZONE_RETURN_IF_ERROR(metadata.newest);
    named = NamedZones(device.geometry(), metadata.state, metadata.zones);
    for (const ZoneId zone : metadata.behind_zones) named.emplace(zone, 0);
    for (uint32_t i = 0; i < HomeZones(metadata.copies_wanted); ++i) named.emplace(ZoneId(i), 0);
    for (const ZoneId zone : PinnedZones(device, metadata.uuid, kPageDirectory)) named.emplace(zone, 0);
    ISOZONE_RETURN_IF_ERROR(FlushDevice(device));  // makes durable what says that the other zones are dead
  }
  std::vector<ZoneDescriptor> report(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  FreedZones zones;
  for (const ZoneDescriptor& zone : report) {
    const auto known = named.find(zone.zone);
    uint64_t& written = zones.written.emplace_back(zone.write_pointer);
    if (zone.state == ZoneState::kFull) written = std::min(written, known == named.end() ? 0 : known->second);
    const bool owned = has_owner ? known != named.end() : zone.zone.value() < kProbedZones;
    if (owned || zone.state == ZoneState::kReadOnly || zone.state == ZoneState::kOffline) continue;
    if (zone.state != ZoneState::kEmpty) {
      if (!has_owner) continue;
      ISOZONE_RETURN_IF_ERROR(ManageZone(device, DeviceOp::kReset, zone.zone));
      written = 0;
    }
    zones.free.push_back(zone.zone);
  }
  return zones;
}

}  // namespace isozone
