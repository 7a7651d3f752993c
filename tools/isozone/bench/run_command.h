// One device command of a benchmark, which is waited for.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone::cli {

// Submits a command and waits for it. For resets `data` is null and `length` 0. Any thread.
Status RunCommand(ZonedDevice& device, DeviceOp op, DeviceOffset offset, std::byte* data, uint64_t length);

}  // namespace isozone::cli
