// How commands open a device: from the URI that the user typed to an open device or a mounted file system. Some layer
// must know every option of the URI, even if the command does not use that layer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/emulated/nand/profile.h"
#include "device/open_device.h"
#include "store/file_system.h"

namespace isozone::cli {

// A device that is open but not mounted, with the options of the URI for mounting it.
struct OpenedDevice {
  std::unique_ptr<ZonedDevice> device;
  MountOptions mount_options;
};

// Opens the device. kNotFound only if every option is known and the image is missing. kNotSupported if the file is no
// image, is truncated or has another version, because it cannot be used, but no file system was found corrupt.
Result<OpenedDevice> OpenByUri(const std::string& uri, OpenMode mode);

// Mounts the file system on it. kNotSupported also if the device is not formatted.
Result<std::unique_ptr<FileSystem>> MountOpened(OpenedDevice opened);

// Opens and mounts. A kReadOnly mount can run beside a writer in another process.
Result<std::unique_ptr<FileSystem>> MountByUri(const std::string& uri, OpenMode mode);

// Returns the profile that an emulated device was made with; empty for other devices.
std::optional<Profile> ProfileOf(const ZonedDevice& device);

}  // namespace isozone::cli
