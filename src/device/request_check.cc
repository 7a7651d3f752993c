#include "device/request_check.h"

namespace isozone {
namespace {

DeviceStatus CheckTransfer(const DeviceGeometry& geometry, const DeviceRequest& request) {
  const uint64_t limit = request.op == DeviceOp::kAppend ? geometry.max_append : geometry.max_transfer;
  if (request.data == nullptr || request.length == 0 || (limit != 0 && request.length > limit) ||
      !IsAligned(request.length | request.offset.value(), geometry.block_size) ||
      !IsAligned(reinterpret_cast<uintptr_t>(request.data), geometry.buffer_alignment)) {
    return DeviceStatus::kInvalidField;
  }
  const uint64_t offset = geometry.OffsetInZone(request.offset);
  if (request.op == DeviceOp::kAppend) {
    return offset == 0 ? DeviceStatus::kSuccess : DeviceStatus::kInvalidField;
  }
  if (request.length > geometry.zone_count * geometry.zone_size - request.offset.value()) {
    return DeviceStatus::kLbaOutOfRange;
  }
  return request.length > geometry.zone_size - offset ? DeviceStatus::kZoneBoundaryError : DeviceStatus::kSuccess;
}

}  // namespace

DeviceStatus CheckRequest(const DeviceGeometry& geometry, bool read_only, const DeviceRequest& request) {
  if (request.op == DeviceOp::kFlush) return DeviceStatus::kSuccess;
  if (request.op != DeviceOp::kRead && read_only) return DeviceStatus::kNamespaceWriteProtected;
  if (request.offset.value() / geometry.zone_size >= geometry.zone_count) return DeviceStatus::kLbaOutOfRange;
  if (IsTransfer(request.op)) return CheckTransfer(geometry, request);
  return geometry.OffsetInZone(request.offset) == 0 ? DeviceStatus::kSuccess : DeviceStatus::kInvalidField;
}

}  // namespace isozone
