// How commands get at a device: from the URI the user typed to an open device or a mounted file system. Every option of
// the URI must be known to some layer, whichever of them the command uses.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/open_device.h"
#include "fs/file_system.h"
#include "nand/profile.h"

namespace isozone::cli {

// A device that is open but not mounted, and what the URI says about mounting it.
struct OpenedDevice {
  std::unique_ptr<ZonedDevice> device;
  MountOptions mount_options;
};

// kNotFound only where every option is known and the image is missing. An image that is none, truncated or of another
// version is kNotSupported: it cannot be used, but no file system was found corrupt.
Result<OpenedDevice> OpenByUri(const std::string& uri, OpenMode mode);

// kNotSupported also where the device is not formatted.
Result<std::unique_ptr<FileSystem>> MountOpened(OpenedDevice opened);

// Both steps. kReadOnly mounts run beside a writer in another process.
Result<std::unique_ptr<FileSystem>> MountByUri(const std::string& uri, OpenMode mode);

// What an emulated device was made as; none for other devices.
std::optional<Profile> ProfileOf(const ZonedDevice& device);

}  // namespace isozone::cli
