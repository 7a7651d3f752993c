// The rules of the seam that every backend checks before a request reaches its zones: what can be said of a request
// from the geometry alone. Pure.
#pragma once

#include "device/zoned_device.h"

namespace isozone {

constexpr bool IsTransfer(DeviceOp op) {
  return op == DeviceOp::kRead || op == DeviceOp::kWrite || op == DeviceOp::kAppend;
}

// Returns kSuccess, or the status with which `request` completes without having been started.
DeviceStatus CheckRequest(const DeviceGeometry& geometry, bool read_only, const DeviceRequest& request);

}  // namespace isozone
