#include "device/zoned_device.h"

#include <fmt/format.h>

#include "base/latch.h"

namespace isozone {

std::string_view ZoneStateName(ZoneState state) {
  switch (state) {
    case ZoneState::kEmpty:
      return "empty";
    case ZoneState::kImplicitlyOpen:
      return "implicitly-open";
    case ZoneState::kExplicitlyOpen:
      return "explicitly-open";
    case ZoneState::kClosed:
      return "closed";
    case ZoneState::kReadOnly:
      return "read-only";
    case ZoneState::kFull:
      return "full";
    case ZoneState::kOffline:
      return "offline";
  }
  return "unknown";
}

std::string_view DeviceStatusName(DeviceStatus status) {
  switch (status) {
    case DeviceStatus::kSuccess:
      return "Success (000h)";
    case DeviceStatus::kInvalidField:
      return "Invalid Field in Command (002h)";
    case DeviceStatus::kPowerLoss:
      return "Aborted due to Power Loss (005h)";
    case DeviceStatus::kInternalError:
      return "Internal Error (006h)";
    case DeviceStatus::kLbaOutOfRange:
      return "LBA Out of Range (080h)";
    case DeviceStatus::kCapacityExceeded:
      return "Capacity Exceeded (081h)";
    case DeviceStatus::kNamespaceWriteProtected:
      return "Namespace is Write Protected (020h)";
    case DeviceStatus::kZoneBoundaryError:
      return "Zone Boundary Error (1B8h)";
    case DeviceStatus::kZoneIsFull:
      return "Zone Is Full (1B9h)";
    case DeviceStatus::kZoneIsReadOnly:
      return "Zone Is Read Only (1BAh)";
    case DeviceStatus::kZoneIsOffline:
      return "Zone Is Offline (1BBh)";
    case DeviceStatus::kZoneInvalidWrite:
      return "Zone Invalid Write (1BCh)";
    case DeviceStatus::kTooManyActiveZones:
      return "Too Many Active Zones (1BDh)";
    case DeviceStatus::kTooManyOpenZones:
      return "Too Many Open Zones (1BEh)";
    case DeviceStatus::kInvalidZoneStateTransition:
      return "Invalid Zone State Transition (1BFh)";
    case DeviceStatus::kWriteFault:
      return "Write Fault (280h)";
    case DeviceStatus::kUnrecoveredReadError:
      return "Unrecovered Read Error (281h)";
  }
  return "unknown status";
}

std::string_view DeviceOpName(DeviceOp op) {
  switch (op) {
    case DeviceOp::kRead:
      return "read";
    case DeviceOp::kWrite:
      return "write";
    case DeviceOp::kAppend:
      return "append";
    case DeviceOp::kReset:
      return "reset";
    case DeviceOp::kFinish:
      return "finish";
    case DeviceOp::kOpen:
      return "open";
    case DeviceOp::kClose:
      return "close";
    case DeviceOp::kFlush:
      return "flush";
  }
  return "unknown";
}

DeviceStatus SubmitAndWait(ZonedDevice& device, DeviceRequest& request) {
  Latch latch;
  latch.Expect(request);
  request.may_block = true;
  device.Submit(request);
  latch.Wait();
  request.may_block = false;
  return request.status;
}

Status ToStatus(const DeviceGeometry& geometry, const DeviceRequest& request) {
  if (request.status == DeviceStatus::kSuccess) return Status::Ok();
  std::string text;
  if (request.op == DeviceOp::kFlush) {
    text = fmt::format("flush failed: {}", DeviceStatusName(request.status));
  } else {
    text = fmt::format("{} of {} bytes in zone {} at {} failed: {}", DeviceOpName(request.op), request.length,
                       geometry.ZoneOf(request.offset).value(), geometry.OffsetInZone(request.offset),
                       DeviceStatusName(request.status));
  }
  if (request.status == DeviceStatus::kNamespaceWriteProtected) return Status::ReadOnly(std::move(text));
  if (request.status == DeviceStatus::kTooManyActiveZones || request.status == DeviceStatus::kTooManyOpenZones) {
    return Status::NoSpace(std::move(text.append("; others, another namespace or a tool, hold zones of the device")));
  }
  if (request.status == DeviceStatus::kCapacityExceeded) {
    return Status::NoSpace(std::move(text.append("; the disk under the device is full, make room there")));
  }
  if (request.status == DeviceStatus::kInvalidField) return Status::InvalidArgument(std::move(text));
  return Status::IoError(std::move(text));
}

}  // namespace isozone
