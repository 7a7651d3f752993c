// Zones that a tool may write and reset beside a file system that is not mounted.
#pragma once

#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

// The empty zones of a device, in order, but for those that the file system on it has set aside (a superblock zone, the
// journal's next zone): what a killed tool leaves written in the others, the file system takes for the trace of a power
// cut, and resets. All empty zones where nothing is written to the zones that file systems begin with; otherwise the
// errors of RecoverMetadata, for an owner that is damaged or unknown may need any zone.
Result<std::vector<ZoneId>> FindFreeZones(ZonedDevice& device);

}  // namespace isozone
