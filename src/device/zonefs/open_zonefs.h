// Opens a zoned block device through a mounted zonefs: zonefs:/mnt/z.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/uri.h"
#include "device/linux/linux_device.h"
#include "device/open_device.h"

namespace isozone {

// Opens the device. Takes its options from `uri.options`: io, as for dev:, where a writer needs io_uring. A writer has
// the mount for itself. Each error says in one line what to do: kNotFound, kNotSupported, kReadOnly, kPermissionDenied,
// kBusy.
Result<std::unique_ptr<LinuxDevice>> OpenZonefs(Uri& uri, OpenMode mode);

// Returns OK if OpenZonefs would find a zonefs that this process may read. Checks and takes the options, too.
Status CheckZonefs(Uri& uri);

}  // namespace isozone
