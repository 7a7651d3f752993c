// Formatting: every zone is reset, then the copies of the metadata are written, each a superblock and a checkpoint of the
// empty state. A power cut before the first is whole leaves a device that is not formatted; after that, one that is.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

struct FormatOptions {
  std::string label;             // up to 63 bytes, for people
  bool force = false;            // overwrite a device that carries a file system already
  uint32_t metadata_copies = 2;  // of the metadata, 1 or 2: with two a zone that is lost takes nothing else with it
};

// Writes an empty file system: all zones are reset. kAlreadyExists if the device carries one, Isozone's or another's
// (ZenFS is recognised), and `force` is not set; kInvalidArgument if the device has too few zones or active zones,
// saying how many are needed and for what.
Status FormatDevice(ZonedDevice& device, const FormatOptions& options);

}  // namespace isozone
