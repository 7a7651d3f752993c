// Opens a zoned block device of Linux by its path: dev:/dev/nvme0n2. The path of the character device of an NVMe
// namespace, dev:/dev/ng0n2, opens both: transfers are commands to that (opened_block_device.h).
#pragma once

#include <memory>

#include "base/status.h"
#include "base/uri.h"
#include "device/linux/linux_device.h"
#include "device/linux/transfers.h"
#include "device/open_device.h"

namespace isozone {

// Opens the device. Takes its options from `uri.options`: io=ring or io=threads says how requests reach the kernel;
// without it, io_uring is used where the kernel allows that. A writer has the device for itself (O_EXCL). Each error
// says in one line what to do: kNotFound, kBusy, kPermissionDenied, kReadOnly; kNotSupported if it is no block device
// or has no zones.
Result<std::unique_ptr<LinuxDevice>> OpenLinuxDevice(Uri& uri, OpenMode mode);

// Takes the option io, which OpenLinuxDevice describes.
Result<TransferPath> TakeTransferPath(UriOptions& options);

// Returns OK if OpenLinuxDevice would get as far as opening the device. Checks and takes the options, too.
Status CheckLinuxDevice(Uri& uri);

}  // namespace isozone
