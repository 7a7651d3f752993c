// ExportShape: what the kernel is told of a device that is exported, made from its geometry. Pure.
//
//   zones      The kernel takes only zones whose size is a power of two. Their capacity may be lower.
//   limits     No limit of open or active zones may be above the number of zones.
//   requests   are at most kMaxRequest long, and as long as the device allows. The kernel splits longer ones, and sends
//              the parts of a write one after another.
//   caches     A completed write is in the device's volatile cache (zoned_device.h), so the kernel sends flushes and
//              Force Unit Access.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/export/ublk_abi.h"
#include "device/zoned_device.h"

namespace isozone {

// Bytes. A queue has as much memory for each request that it can hold.
inline constexpr uint32_t kMaxRequest = 512 * 1024;

struct ExportShape {
  uint32_t max_transfer = 0;  // bytes of one request
  ublk::Parameters parameters;
};

// Returns what the kernel is told of a device. kNotSupported if the kernel takes no such device; the message says what
// to do.
Result<ExportShape> ShapeOf(const DeviceGeometry& geometry, bool read_only);

// Returns whether a device that was exported with `known` can go on as `shape`.
bool SameShape(const ublk::Parameters& known, const ublk::Parameters& shape);

}  // namespace isozone
