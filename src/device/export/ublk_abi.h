// What the ublk driver of Linux and its servers exchange (include/uapi/linux/ublk_cmd.h, as of Linux 6.6). The headers
// of Debian 12 describe an older ublk, without zones, so that it is written down here.
//
//   /dev/ublk-control   takes ControlCommand in io_uring commands: adds, starts, stops and removes devices.
//   /dev/ublkcN         belongs to the server of device N. IoCommand fetches a request of the device's users, and
//                       commits the result of the last one with that tag. RequestDescriptor is the request: an array
//                       for each queue, indexed by tag, which the server maps. The data of a request is read and
//                       written at DataPosition (UBLK_F_USER_COPY, which zones need).
//   /dev/ublkbN         is the block device.
#pragma once

#include <linux/ioctl.h>

#include <cstdint>

namespace isozone::ublk {

inline constexpr const char* kControlPath = "/dev/ublk-control";

// Feature flags.
inline constexpr uint64_t kUserRecovery = 1U << 3;         // the device outlives its server
inline constexpr uint64_t kUserRecoveryReissue = 1U << 4;  // requests that the dead server had are sent to the next one
inline constexpr uint64_t kCommandIoctlEncode = 1U << 6;
inline constexpr uint64_t kUserCopy = 1U << 7;
inline constexpr uint64_t kZoned = 1U << 8;

enum class DeviceState : uint16_t { kDead = 0, kLive = 1, kQuiesced = 2, kFailIo = 3 };

inline constexpr uint32_t kAnyDevice = UINT32_MAX;  // in kAddDevice: the kernel chooses the number
inline constexpr uint16_t kNoQueue = UINT16_MAX;

// The content of the 128-byte submission of a control command to io_uring.
struct ControlCommand {
  uint32_t device = kAnyDevice;
  uint16_t queue = kNoQueue;
  uint16_t length = 0;   // bytes at `address`
  uint64_t address = 0;  // memory of a DeviceInfo, Parameters or a feature word, as the command says
  uint64_t data = 0;
  uint16_t path_length = 0;
  uint16_t padding = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(ControlCommand) == 32);

inline constexpr uint32_t kGetDeviceInfo = _IOR('u', 0x02, ControlCommand);  // fills a DeviceInfo
inline constexpr uint32_t kAddDevice = _IOWR('u', 0x04, ControlCommand);     // takes and fills a DeviceInfo
inline constexpr uint32_t kDeleteDevice = _IOWR('u', 0x05, ControlCommand);  // waits until nobody has it open
// Deletes the device as well, without waiting for that (Linux 6.9).
inline constexpr uint32_t kDeleteDeviceLater = _IOR('u', 0x14, ControlCommand);
inline constexpr uint32_t kStartDevice = _IOWR('u', 0x06, ControlCommand);  // data: the server's process
inline constexpr uint32_t kStopDevice = _IOWR('u', 0x07, ControlCommand);
inline constexpr uint32_t kSetParameters = _IOWR('u', 0x08, ControlCommand);  // takes Parameters
inline constexpr uint32_t kGetParameters = _IOR('u', 0x09, ControlCommand);   // fills Parameters
inline constexpr uint32_t kStartRecovery = _IOWR('u', 0x10, ControlCommand);
inline constexpr uint32_t kEndRecovery = _IOWR('u', 0x11, ControlCommand);  // data: the server's process
inline constexpr uint32_t kGetFeatures = _IOR('u', 0x13, ControlCommand);   // fills a uint64_t of flags

struct DeviceInfo {
  uint16_t queues = 0;
  uint16_t depth = 0;  // requests of each queue
  uint16_t state = 0;  // DeviceState
  uint16_t padding0 = 0;
  uint32_t max_transfer = 0;  // bytes of one request
  uint32_t device = kAnyDevice;
  int32_t server = 0;  // the process
  uint32_t padding1 = 0;
  uint64_t flags = 0;
  uint64_t server_flags = 0;
  uint32_t owner_user = 0;
  uint32_t owner_group = 0;
  uint64_t reserved1 = 0;
  uint64_t reserved2 = 0;
};
static_assert(sizeof(DeviceInfo) == 64);

// Parameters: `types` says which parts are set.
inline constexpr uint32_t kBasicParameters = 1U << 0;
inline constexpr uint32_t kZonedParameters = 1U << 3;

// BasicParameters::attributes
inline constexpr uint32_t kReadOnly = 1U << 0;
inline constexpr uint32_t kVolatileCache = 1U << 2;
inline constexpr uint32_t kForceUnitAccess = 1U << 3;

// Lengths and positions are in sectors of 512 bytes, whatever the blocks are.
struct BasicParameters {
  uint32_t attributes = 0;
  uint8_t logical_block_shift = 0;  // the base-2 logarithm of bytes, like the next three
  uint8_t physical_block_shift = 0;
  uint8_t optimal_io_shift = 0;
  uint8_t minimal_io_shift = 0;
  uint32_t max_sectors = 0;    // at most, in a request
  uint32_t chunk_sectors = 0;  // the zone size
  uint64_t device_sectors = 0;
  uint64_t virtual_boundary = 0;
  bool operator==(const BasicParameters&) const = default;
};
static_assert(sizeof(BasicParameters) == 32);

struct DiscardParameters {
  uint32_t alignment = 0;
  uint32_t granularity = 0;
  uint32_t max_discard_sectors = 0;
  uint32_t max_write_zeroes_sectors = 0;
  uint16_t max_segments = 0;
  uint16_t reserved = 0;
};
static_assert(sizeof(DiscardParameters) == 20);

struct DeviceNumbers {
  uint32_t control_major = 0;
  uint32_t control_minor = 0;
  uint32_t disk_major = 0;
  uint32_t disk_minor = 0;
};
static_assert(sizeof(DeviceNumbers) == 16);

struct ZonedParameters {
  uint32_t max_open_zones = 0;  // 0: no limit
  uint32_t max_active_zones = 0;
  uint32_t max_append_sectors = 0;
  uint8_t reserved[20] = {};
  bool operator==(const ZonedParameters&) const = default;
};
static_assert(sizeof(ZonedParameters) == 32);

struct Parameters {
  uint32_t length = sizeof(Parameters);
  uint32_t types = 0;
  BasicParameters basic;
  DiscardParameters discard;
  DeviceNumbers numbers;
  ZonedParameters zoned;
  uint32_t padding = 0;
};
static_assert(sizeof(Parameters) == 112);

// Operations, in the low 8 bits of RequestDescriptor::operation.
enum class Operation : uint8_t {
  kRead = 0,
  kWrite = 1,
  kFlush = 2,
  kDiscard = 3,
  kWriteSame = 4,
  kWriteZeroes = 5,
  kZoneOpen = 10,
  kZoneClose = 11,
  kZoneFinish = 12,
  kZoneAppend = 13,
  kZoneResetAll = 14,
  kZoneReset = 15,
  kReportZones = 18,
};
inline constexpr uint32_t kOperationMask = 0xFF;
inline constexpr uint32_t kFuaFlag = 1U << 13;  // flags begin at bit 8, and are absolute

struct RequestDescriptor {
  uint32_t operation = 0;  // an Operation, and flags
  uint32_t count = 0;      // sectors; of kReportZones: zones
  uint64_t sector = 0;     // the first sector; of kReportZones: that of the first zone
  uint64_t address = 0;    // not used with UBLK_F_USER_COPY
};
static_assert(sizeof(RequestDescriptor) == 24);

inline constexpr uint32_t kMaxDepth = 4096;

// The content of the 64-byte submission of a queue's command to io_uring.
struct IoCommand {
  uint16_t queue = 0;
  uint16_t tag = 0;
  int32_t result = 0;          // bytes, or -errno
  uint64_t append_sector = 0;  // where an append went; 0 in all others
};
static_assert(sizeof(IoCommand) == 16);

inline constexpr uint32_t kFetch = _IOWR('u', 0x20, IoCommand);
inline constexpr uint32_t kCommitAndFetch = _IOWR('u', 0x21, IoCommand);

// Returns where the data of a request is, as a position in /dev/ublkcN.
constexpr uint64_t DataPosition(uint16_t queue, uint16_t tag) {
  return 0x80000000U + (uint64_t{queue} << 41) + (uint64_t{tag} << 25);
}
inline constexpr uint32_t kMaxTransfer = 1U << 25;  // bytes

}  // namespace isozone::ublk
