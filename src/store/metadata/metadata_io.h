// Device I/O of the metadata: in whole blocks; what is synchronous is split where a device limits the length of a
// transfer.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

Result<ZoneDescriptor> DescribeZone(const ZonedDevice& device, ZoneId zone);

// Whether the write pointer of a zone in this state can move.
constexpr bool IsWritable(ZoneState state) { return state == ZoneState::kEmpty || IsActive(state); }

Status ReadBlocks(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Writes at the write pointer; durable when it returns kSuccess.
DeviceStatus WriteDurably(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Everything that was written before is durable when it returns OK.
Status FlushDevice(ZonedDevice& device);

// kReset, kFinish.
Status ManageZone(ZonedDevice& device, DeviceOp op, ZoneId zone);

}  // namespace isozone
