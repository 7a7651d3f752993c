// What an error of the kernel means to the seam. Pure.
//
// The kernel has one errno for many reasons: EIO is a bad block as well as a zone that another program has finished. So
// the zone's report, taken after the error, decides first:
//
//   a resource is missing (EOVERFLOW, ETOOMANYREFS)    Too Many Active Zones, Too Many Open Zones; the zone is not at
//                                                      fault
//   forbidden (EROFS, EPERM, EACCES), and the zone is not dead  Namespace Is Write Protected
//   a write, and the zone is full, read-only, offline  Zone Is Full, Zone Is Read Only, Zone Is Offline
//   a write, and the pointer was elsewhere before it   Zone Invalid Write
//   a read, and the zone is offline                    Zone Is Offline
//   a reset or finish, and the zone is empty or full   Success: the answer of the device was lost, and not the command
//   a command that the state of the zone does not allow  Invalid Zone State Transition
//   the device or its transport (ENODATA, EREMOTEIO, EIO, EILSEQ, ENOSPC, EBADE, ...)
//                                                      Write Fault, Unrecovered Read Error
//   the host (ENODEV, ETIMEDOUT, ENOMEM, EAGAIN, ...)  Internal Error
#pragma once

#include <cstdint>

#include "device/zoned_device.h"

namespace isozone {

// Returns the status of a request that the kernel ended with `error` (a value of errno, not 0). `zone` is what the
// kernel reported of the zone afterwards; null for a flush, and if there is no report.
DeviceStatus StatusOf(const DeviceGeometry& geometry, const DeviceRequest& request, int error,
                      const ZoneDescriptor* zone);

// Returns whether the error means that the device is no longer there.
bool IsGone(int error);

// Returns whether the state allows a reset, finish, open or close (ZNS 2.1.1.2).
bool Allows(ZoneState state, DeviceOp op);

}  // namespace isozone
