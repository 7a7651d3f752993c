#include "fs/open_log.h"

namespace isozone {

Result<uint64_t> WritePointerOf(const ZonedDevice& device, ZoneId zone) {
  ZoneDescriptor descriptor;
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(zone, {&descriptor, 1}));
  return descriptor.write_pointer;
}

Result<LogContents> ReadLog(FsCore& core, const Inode& inode) {
  LogContents contents;
  for (const LogRegion& region : inode.regions) {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t write_pointer, WritePointerOf(*core.device, region.zone));
    LogScan scan = ScanLogRegion(core.engine, core.frame_seed, inode.id, region, contents.size, write_pointer);
    contents.extents.insert(contents.extents.end(), scan.extents.begin(), scan.extents.end());
    contents.size += scan.payload;
    if (!scan.damage.ok()) {
      contents.damage = scan.damage;
      break;
    }
  }
  return contents;
}

}  // namespace isozone
