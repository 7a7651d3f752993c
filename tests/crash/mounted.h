// A file system on a CrashDevice, and the check that every image must pass.
#pragma once

#include <memory>

#include "base/status.h"
#include "crash/crash_device.h"
#include "store/file_system.h"

namespace isozone::crash {

struct Mounted {
  CrashDevice* device = nullptr;  // the file system's
  std::unique_ptr<FileSystem> fs;
};

// `records`: see CrashDevice.
Result<Mounted> Mount(const DeviceImage& image, const MountOptions& options, bool records);

// kCorruption with the first error that fsck finds.
Status CheckByFsck(const DeviceImage& image);

}  // namespace isozone::crash
