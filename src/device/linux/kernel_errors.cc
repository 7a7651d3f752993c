#include "device/linux/kernel_errors.h"

#include <cerrno>

namespace isozone {
namespace {

DeviceStatus OfWrite(uint64_t begin, uint64_t length, const ZoneDescriptor& zone) {
  switch (zone.state) {
    case ZoneState::kReadOnly:
      return DeviceStatus::kZoneIsReadOnly;
    case ZoneState::kOffline:
      return DeviceStatus::kZoneIsOffline;
    case ZoneState::kFull:
      // Full where the write would have filled it: the write has failed otherwise.
      return begin + length == zone.capacity ? DeviceStatus::kWriteFault : DeviceStatus::kZoneIsFull;
    default:
      break;
  }
  const bool at_pointer = begin <= zone.write_pointer && zone.write_pointer <= begin + length;
  return at_pointer ? DeviceStatus::kWriteFault : DeviceStatus::kZoneInvalidWrite;
}

bool IsDead(const ZoneDescriptor* zone) {
  return zone != nullptr && (zone->state == ZoneState::kReadOnly || zone->state == ZoneState::kOffline);
}

// Whether the zone is what a reset or finish makes of it.
bool WasDone(DeviceOp op, ZoneState state) {
  if (op == DeviceOp::kReset) return state == ZoneState::kEmpty;
  return op == DeviceOp::kFinish && state == ZoneState::kFull;
}

bool IsOfHost(int error) {
  return IsGone(error) || error == ETIMEDOUT || error == ENOMEM || error == EAGAIN || error == EINTR ||
         error == ECANCELED || error == EBADF || error == ENOSYS || error == EMFILE || error == ENFILE;
}

}  // namespace

bool IsGone(int error) { return error == ENODEV || error == ENXIO || error == ESHUTDOWN || error == ENOMEDIUM; }

bool Allows(ZoneState state, DeviceOp op) {
  switch (op) {
    case DeviceOp::kOpen:
      return state == ZoneState::kEmpty || IsActive(state);
    case DeviceOp::kClose:
      return IsActive(state);
    default:
      return state == ZoneState::kEmpty || state == ZoneState::kFull || IsActive(state);
  }
}

DeviceStatus StatusOf(const DeviceGeometry& geometry, const DeviceRequest& request, int error,
                      const ZoneDescriptor* zone) {
  if (error == EOVERFLOW) return DeviceStatus::kTooManyActiveZones;
  if (error == ETOOMANYREFS) return DeviceStatus::kTooManyOpenZones;
  // zonefs forbids what a zone that died cannot do.
  const bool is_forbidden = error == EROFS || error == EPERM || error == EACCES;
  if (is_forbidden && !IsDead(zone)) return DeviceStatus::kNamespaceWriteProtected;
  if (IsOfHost(error)) return DeviceStatus::kInternalError;
  switch (request.op) {
    case DeviceOp::kRead:
      if (zone != nullptr && zone->state == ZoneState::kOffline) return DeviceStatus::kZoneIsOffline;
      return error == EINVAL ? DeviceStatus::kInvalidField : DeviceStatus::kUnrecoveredReadError;
    case DeviceOp::kWrite:
    case DeviceOp::kAppend: {
      if (zone == nullptr) return DeviceStatus::kWriteFault;
      const DeviceOffset at = request.op == DeviceOp::kWrite ? request.offset : request.written_at;
      const DeviceStatus status = OfWrite(geometry.OffsetInZone(at), request.length, *zone);
      return status == DeviceStatus::kWriteFault && error == EINVAL ? DeviceStatus::kInvalidField : status;
    }
    case DeviceOp::kFlush:
      return DeviceStatus::kInternalError;
    default:
      if (zone != nullptr && WasDone(request.op, zone->state)) return DeviceStatus::kSuccess;
      if (zone != nullptr && !Allows(zone->state, request.op)) return DeviceStatus::kInvalidZoneStateTransition;
      return DeviceStatus::kWriteFault;
  }
}

}  // namespace isozone
