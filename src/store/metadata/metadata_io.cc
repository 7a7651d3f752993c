#include "store/metadata/metadata_io.h"

#include <algorithm>

#include <fmt/format.h>

namespace isozone {
namespace {

uint64_t TransferMax(const DeviceGeometry& geometry) {
  const uint64_t limit = RoundDown(geometry.max_transfer, geometry.block_size);
  return limit == 0 ? UINT64_MAX : limit;
}

}  // namespace

Result<ZoneDescriptor> DescribeZone(const ZonedDevice& device, ZoneId zone) {
  ZoneDescriptor descriptor;
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(zone, {&descriptor, 1}));
  return descriptor;
}

Status ReadBlocks(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks) {
  while (!blocks.empty()) {
    DeviceRequest request;
    request.op = DeviceOp::kRead;
    request.offset = offset;
    request.data = blocks.data();
    request.length = std::min<uint64_t>(blocks.size(), TransferMax(device.geometry()));
    if (SubmitAndWait(device, request) != DeviceStatus::kSuccess) return ToStatus(device.geometry(), request);
    offset = DeviceOffset(offset.value() + request.length);
    blocks = blocks.subspan(request.length);
  }
  return {};
}

DeviceStatus WriteDurably(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks) {
  while (!blocks.empty()) {
    DeviceRequest request;
    request.op = DeviceOp::kWrite;
    request.offset = offset;
    request.data = blocks.data();
    request.length = std::min<uint64_t>(blocks.size(), TransferMax(device.geometry()));
    request.fua = request.length == blocks.size() || !device.geometry().fua_covers_zone;
    if (const DeviceStatus status = SubmitAndWait(device, request); status != DeviceStatus::kSuccess) return status;
    offset = DeviceOffset(offset.value() + request.length);
    blocks = blocks.subspan(request.length);
  }
  return DeviceStatus::kSuccess;
}

Status FlushDevice(ZonedDevice& device) {
  DeviceRequest request;
  request.op = DeviceOp::kFlush;
  SubmitAndWait(device, request);
  return ToStatus(device.geometry(), request);
}

Status ManageZone(ZonedDevice& device, DeviceOp op, ZoneId zone) {
  DeviceRequest request;
  request.op = op;
  request.offset = device.geometry().ZoneStart(zone);
  SubmitAndWait(device, request);
  return ToStatus(device.geometry(), request);
}

}  // namespace isozone
