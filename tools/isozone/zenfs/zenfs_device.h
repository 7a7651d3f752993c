// Reads a ZenFS device: finds the metadata that counts, checks the files against the zones, and reads their content.
// Nothing is written.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "isozone/zenfs/zenfs_metadata.h"

namespace isozone::cli {

// Returns the files that have a name, with their sizes and extents checked. What was written to a file that was open is
// part of it, as far as ZenFS itself would recover it. kNotFound if this is no ZenFS device; kNotSupported;
// kCorruption.
Result<std::vector<ZenFsFile>> ReadZenFs(ZonedDevice& device);

// Calls `take` with the content of `file`, in order.
Status ReadZenFsFile(ZonedDevice& device, const ZenFsFile& file,
                     const std::function<Status(std::span<const std::byte>)>& take);

}  // namespace isozone::cli
