#include "crash/mounted.h"

#include <utility>

#include "store/mount/fsck.h"

namespace isozone::crash {

Result<Mounted> Mount(const DeviceImage& image, const MountOptions& options, bool records) {
  auto device = std::make_unique<CrashDevice>(image, records);
  Mounted mounted;
  mounted.device = device.get();
  ISOZONE_ASSIGN_OR_RETURN(mounted.fs, FileSystem::Mount(std::move(device), options));
  return mounted;
}

Status CheckByFsck(const DeviceImage& image) {
  CrashDevice device(image, false);
  ISOZONE_ASSIGN_OR_RETURN(const FsckReport report, Fsck(device, {.read_data = true, .progress = {}}));
  for (const FsckFinding& finding : report.findings) {
    if (finding.severity == FsckSeverity::kError) return Status::Corruption("fsck: " + finding.text);
  }
  return Status::Ok();
}

}  // namespace isozone::crash
