// Zones that a tool may write and reset on a device whose file system is not mounted.
#pragma once

#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

struct FreedZones {
  // That the file system on the device has nothing in and does not keep for its metadata, in order, all empty.
  std::vector<ZoneId> free;
  // By zone, bytes from its start that were certainly written: what lies behind, in a zone that was finished early, costs
  // no time to read.
  std::vector<uint64_t> written;
};

// Free zones that are not empty, as a tool that was killed or a power cut leaves them, are reset, as the file system would
// do. Where nothing is written to the zones that file systems begin with, nothing is reset, and these are not free: a tool
// that is killed must leave a device that can be formatted. Otherwise the errors of RecoverMetadata, for an owner that is
// damaged or unknown may need any zone. `device` is open for writing.
Result<FreedZones> FreeUpZones(ZonedDevice& device);

}  // namespace isozone
