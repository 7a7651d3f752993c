// Device I/O of the metadata, in whole blocks. A transfer that waits is split if the device limits the length of one.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

Result<ZoneDescriptor> DescribeZone(const ZonedDevice& device, ZoneId zone);

// Returns whether the write pointer of a zone in this state can move.
constexpr bool IsWritable(ZoneState state) { return state == ZoneState::kEmpty || IsActive(state); }

Status ReadBlocks(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Writes at the write pointer. The blocks are durable if it returns kSuccess.
DeviceStatus WriteDurably(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Makes everything durable that was written before.
Status FlushDevice(ZonedDevice& device);

// Resets or finishes a zone: `op` is kReset or kFinish.
Status ManageZone(ZonedDevice& device, DeviceOp op, ZoneId zone);

}  // namespace isozone
