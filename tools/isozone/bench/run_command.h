// Runs one device command of a benchmark.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone::cli {

// Submits a command and waits for it. For resets, `data` is null and `length` 0. Any thread may call it.
Status RunCommand(ZonedDevice& device, DeviceOp op, DeviceOffset offset, std::byte* data, uint64_t length);

}  // namespace isozone::cli
