// FormatDevice: resets every zone, then writes the copies of the metadata, each a superblock and a checkpoint of the
// empty state. A power cut before the first copy is complete leaves an unformatted device; later, a formatted one.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

struct FormatOptions {
  std::string label;             // up to 63 bytes, for users
  bool force = false;            // overwrites a device that carries a file system already
  uint32_t metadata_copies = 2;  // of the metadata, 1 or 2. With two, the loss of a zone loses only the files in it
};

// Writes an empty file system. kAlreadyExists if the device carries a file system, Isozone's or another one (ZenFS is
// recognised), and `force` is not set. kInvalidArgument if the device has too few zones or active zones; the message
// says how many are needed and for what.
Status FormatDevice(ZonedDevice& device, const FormatOptions& options);

}  // namespace isozone
