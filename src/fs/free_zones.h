// Zones that a tool may write and reset on a device whose file system is not mounted.
#pragma once

#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

// The zones that the file system on the device has nothing in and has not set aside (a superblock zone, the journal's next
// zone), in order, all empty: those that are not, as a tool that was killed or a power cut leaves them, are reset, as the
// file system would do. Where nothing is written to the zones that file systems begin with, the empty zones, and nothing
// is reset; otherwise the errors of RecoverMetadata, for an owner that is damaged or unknown may need any zone.
// `device` is open for writing.
Result<std::vector<ZoneId>> FreeUpZones(ZonedDevice& device);

}  // namespace isozone
