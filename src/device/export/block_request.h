// What a request of the block device asks of a ZonedDevice, and what its outcome is to the kernel. Pure.
//
//   the kernel's        the device's
//   read, write, append the same; the data goes through memory of the server. An append begins at the start of its zone
//   flush               kFlush
//   zone operations     kOpen, kClose, kFinish, kReset
//   reset all           one kReset for each zone that is not empty
//   report zones        ReportZones
//   all others          EOPNOTSUPP: discard, and writes of zeroes; the kernel was not offered them either
//
// A descriptor comes from the kernel, but nothing in it is believed: what does not fit the device is refused.
#pragma once

#include <linux/blkzoned.h>

#include <cstdint>
#include <span>

#include "device/export/export_shape.h"
#include "device/export/ublk_abi.h"
#include "device/zoned_device.h"

namespace isozone {

struct BlockRequest {
  enum class Kind : uint8_t { kDevice, kResetAll, kReportZones };

  Kind kind = Kind::kDevice;
  DeviceOp op = DeviceOp::kFlush;  // kDevice
  bool fua = false;
  DeviceOffset offset;  // of reads and writes; of all others, the start of the zone
  uint64_t length = 0;  // bytes of reads, writes and appends
  uint32_t zones = 0;   // kReportZones: how many, at least one
};

// Fills `request` and returns 0, or returns the value of errno with which the request is refused.
int ParseRequest(const DeviceGeometry& geometry, uint32_t max_transfer, const ublk::RequestDescriptor& descriptor,
                 BlockRequest& request);

// Returns what the kernel is told of a request with this status: 0, or a value of errno that the kernel understands.
int ErrorOf(DeviceStatus status);

// Returns a zone as the kernel reports it to the users of the device.
blk_zone ToBlkZone(const DeviceGeometry& geometry, const ZoneDescriptor& zone);

}  // namespace isozone
