#include "device/export/block_request.h"

#include <algorithm>
#include <cerrno>

#include "base/units.h"
#include "device/linux/block_kernel.h"

namespace isozone {
namespace {

// The zone that begins at `sector`. Returns 0 or EINVAL.
int ParseZone(const DeviceGeometry& geometry, uint64_t sector, BlockRequest& request) {
  const uint64_t zone_sectors = geometry.zone_size / kKernelSector;
  if (sector % zone_sectors != 0 || sector / zone_sectors >= geometry.zone_count) return EINVAL;
  request.offset = DeviceOffset(sector * kKernelSector);
  return 0;
}

int ParseTransfer(const DeviceGeometry& geometry, uint32_t max_transfer, const ublk::RequestDescriptor& descriptor,
                  BlockRequest& request) {
  const uint64_t sectors = geometry.zone_count * geometry.zone_size / kKernelSector;
  request.length = descriptor.count * kKernelSector;
  if (descriptor.sector >= sectors || descriptor.count > sectors - descriptor.sector) return EINVAL;
  request.offset = DeviceOffset(descriptor.sector * kKernelSector);
  if (request.length == 0 || request.length > max_transfer) return EINVAL;
  if (!IsAligned(request.length | request.offset.value(), geometry.block_size)) return EINVAL;
  if (request.op == DeviceOp::kAppend) return ParseZone(geometry, descriptor.sector, request);
  return 0;
}

}  // namespace

int ParseRequest(const DeviceGeometry& geometry, uint32_t max_transfer, const ublk::RequestDescriptor& descriptor,
                 BlockRequest& request) {
  request = BlockRequest();
  request.fua = (descriptor.operation & ublk::kFuaFlag) != 0;
  switch (static_cast<ublk::Operation>(descriptor.operation & ublk::kOperationMask)) {
    case ublk::Operation::kRead:
      request.op = DeviceOp::kRead;
      request.fua = false;
      return ParseTransfer(geometry, max_transfer, descriptor, request);
    case ublk::Operation::kWrite:
      request.op = DeviceOp::kWrite;
      return ParseTransfer(geometry, max_transfer, descriptor, request);
    case ublk::Operation::kZoneAppend:
      request.op = DeviceOp::kAppend;
      return ParseTransfer(geometry, max_transfer, descriptor, request);
    case ublk::Operation::kFlush:
      request.op = DeviceOp::kFlush;
      return 0;
    case ublk::Operation::kZoneOpen:
      request.op = DeviceOp::kOpen;
      return ParseZone(geometry, descriptor.sector, request);
    case ublk::Operation::kZoneClose:
      request.op = DeviceOp::kClose;
      return ParseZone(geometry, descriptor.sector, request);
    case ublk::Operation::kZoneFinish:
      request.op = DeviceOp::kFinish;
      return ParseZone(geometry, descriptor.sector, request);
    case ublk::Operation::kZoneReset:
      request.op = DeviceOp::kReset;
      return ParseZone(geometry, descriptor.sector, request);
    case ublk::Operation::kZoneResetAll:
      request.kind = BlockRequest::Kind::kResetAll;
      return 0;
    case ublk::Operation::kReportZones: {
      request.kind = BlockRequest::Kind::kReportZones;
      // The kernel passes on what its user asks for, which may be any sector of the first zone.
      const uint64_t sector = RoundDown(descriptor.sector, geometry.zone_size / kKernelSector);
      if (const int error = ParseZone(geometry, sector, request); error != 0) return error;
      const uint32_t rest = geometry.zone_count - geometry.ZoneOf(request.offset).value();
      const auto fit = static_cast<uint32_t>(max_transfer / sizeof(blk_zone));
      request.zones = std::min({descriptor.count, rest, fit});
      return request.zones == 0 ? EINVAL : 0;
    }
    case ublk::Operation::kDiscard:
    case ublk::Operation::kWriteSame:
    case ublk::Operation::kWriteZeroes:
      break;
  }
  return EOPNOTSUPP;
}

int ErrorOf(DeviceStatus status) {
  switch (status) {
    case DeviceStatus::kSuccess:
      return 0;
    case DeviceStatus::kWriteFault:
    case DeviceStatus::kUnrecoveredReadError:
      return ENODATA;  // an error of the medium
    case DeviceStatus::kTooManyActiveZones:
      return EOVERFLOW;
    case DeviceStatus::kTooManyOpenZones:
      return ETOOMANYREFS;
    case DeviceStatus::kCapacityExceeded:
      return ENOSPC;
    case DeviceStatus::kLbaOutOfRange:
    case DeviceStatus::kNamespaceWriteProtected:
      return EREMOTEIO;  // the device refuses, and would again
    case DeviceStatus::kInvalidField:
    case DeviceStatus::kPowerLoss:
    case DeviceStatus::kInternalError:
    case DeviceStatus::kZoneBoundaryError:
    case DeviceStatus::kZoneIsFull:
    case DeviceStatus::kZoneIsReadOnly:
    case DeviceStatus::kZoneIsOffline:
    case DeviceStatus::kZoneInvalidWrite:
    case DeviceStatus::kInvalidZoneStateTransition:
      break;
  }
  return EIO;
}

blk_zone ToBlkZone(const DeviceGeometry& geometry, const ZoneDescriptor& zone) {
  // The kernel's conditions have the values of the Zone State field.
  static_assert(BLK_ZONE_COND_EMPTY == static_cast<int>(ZoneState::kEmpty) &&
                BLK_ZONE_COND_IMP_OPEN == static_cast<int>(ZoneState::kImplicitlyOpen) &&
                BLK_ZONE_COND_EXP_OPEN == static_cast<int>(ZoneState::kExplicitlyOpen) &&
                BLK_ZONE_COND_CLOSED == static_cast<int>(ZoneState::kClosed) &&
                BLK_ZONE_COND_READONLY == static_cast<int>(ZoneState::kReadOnly) &&
                BLK_ZONE_COND_FULL == static_cast<int>(ZoneState::kFull) &&
                BLK_ZONE_COND_OFFLINE == static_cast<int>(ZoneState::kOffline));
  blk_zone entry{};
  entry.start = geometry.ZoneStart(zone.zone).value() / kKernelSector;
  entry.len = geometry.zone_size / kKernelSector;
  entry.capacity = zone.capacity / kKernelSector;
  // The write pointer of a full zone is where the next zone begins.
  entry.wp =
      zone.state == ZoneState::kFull ? entry.start + entry.len : entry.start + zone.write_pointer / kKernelSector;
  entry.type = BLK_ZONE_TYPE_SEQWRITE_REQ;
  entry.cond = static_cast<uint8_t>(zone.state);
  return entry;
}

}  // namespace isozone
