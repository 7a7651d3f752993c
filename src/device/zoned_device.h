// ZonedDevice: the seam between Isozone and zoned flash. It speaks the NVMe Zoned Namespace Command Set (ZNS, revision
// 1.1; "ZNS n.m" below) and nothing else, so that the emulator, a kernel block device (io_uring) and zonefs fit behind
// it.
//
// The rules that every backend keeps:
//  * Reads and writes are in whole logical blocks. A write must begin at the write pointer of its zone and end at or
//    before the zone's capacity; anything else completes with the status code that ZNS names for it.
//  * At most one write may be in flight to a zone: devices may execute queued commands in any order, so a second one is
//    refused (kZoneInvalidWrite). Any number of zone appends may be in flight.
//  * A completed write is in the device's volatile cache. It survives the process, but a power cut may lose it until a
//    flush that was submitted later has completed. A write with Force Unit Access (`fua`) is durable when it completes:
//    its own bytes (NVM Command Set, Write), and, if geometry().fua_covers_zone, all of its zone before them as well.
//    Reset, finish, open and close are durable when they complete.
//  * A power cut may lose bytes of a zone that lie between two durable ranges, or behind the last one. Of each such
//    range a prefix of whole blocks survives. The write pointer then stands behind the last block that survived; lost
//    blocks below it read as zeros.
//  * Blocks of a zone at or beyond its write pointer read as zeros.
//
// Thread safety: any thread may call any method at any time, except the destructor: it does not wait, so all requests
// must have completed before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "device/device_description.h"

namespace isozone {

// Index of a zone, from 0.
using ZoneId = StrongInt<struct ZoneIdTag, uint32_t>;
// Byte address on the device: zone index times zone *size*, plus the offset in the zone. Block-aligned in every
// request.
using DeviceOffset = StrongInt<struct DeviceOffsetTag, uint64_t>;

// The state of a zone (ZNS 2.1.1.2.1), with the values of the field Zone State.
enum class ZoneState : uint8_t {
  kEmpty = 0x1,
  kImplicitlyOpen = 0x2,
  kExplicitlyOpen = 0x3,
  kClosed = 0x4,
  kReadOnly = 0xD,
  kFull = 0xE,
  kOffline = 0xF,
};
// Returns the name of a state: "empty", "implicitly-open", ...
std::string_view ZoneStateName(ZoneState state);
// Returns whether a zone in this state is open, and so holds an open resource.
constexpr bool IsOpen(ZoneState s) { return s == ZoneState::kImplicitlyOpen || s == ZoneState::kExplicitlyOpen; }
// Returns whether a zone in this state holds an active resource (ZNS 2.1.1.3).
constexpr bool IsActive(ZoneState s) { return IsOpen(s) || s == ZoneState::kClosed; }

// The result of a request, (status code type << 8) | status code, as NVMe prints it.
enum class DeviceStatus : uint16_t {
  kSuccess = 0x000,
  kInvalidField = 0x002,      // not whole blocks, null buffer, longer than the transfer limit
  kPowerLoss = 0x005,         // Commands Aborted due to Power Loss Notification; for every request until power is back
  kInternalError = 0x006,     // the host failed (for example, an I/O error of the image file)
  kLbaOutOfRange = 0x080,     // beyond the last zone, or a read that crosses into an unreadable address
  kCapacityExceeded = 0x081,  // no room behind the device (the host's disk is full): nothing was written
  kNamespaceWriteProtected = 0x020,  // opened read-only
  kZoneBoundaryError = 0x1B8,        // a write or append would cross the zone's capacity, or a read the zone's end
  kZoneIsFull = 0x1B9,
  kZoneIsReadOnly = 0x1BA,
  kZoneIsOffline = 0x1BB,
  kZoneInvalidWrite = 0x1BC,  // not at the write pointer, or a second write in flight to the zone
  kTooManyActiveZones = 0x1BD,
  kTooManyOpenZones = 0x1BE,
  kInvalidZoneStateTransition = 0x1BF,
  kWriteFault = 0x280,
  kUnrecoveredReadError = 0x281,
};
// Returns NVMe's name of a status, with its number: "Zone Invalid Write (1BCh)".
std::string_view DeviceStatusName(DeviceStatus status);
// Returns whether a write was not begun for lack of active or open zones or of room. Neither the zone nor the data is
// at fault then, and the zone is as it was.
constexpr bool IsForLack(DeviceStatus status) {
  return status == DeviceStatus::kTooManyActiveZones || status == DeviceStatus::kTooManyOpenZones ||
         status == DeviceStatus::kCapacityExceeded;
}

// The sizes and limits of a device.
struct DeviceGeometry {
  uint32_t block_size = 4096;  // bytes; a power of two, 512..65536
  uint32_t zone_count = 0;
  uint64_t zone_size = 0;         // bytes; the distance between zone starts; a multiple of block_size
  uint64_t zone_capacity = 0;     // bytes that can be written, 0 < capacity <= size; a multiple of block_size
  uint32_t max_open_zones = 0;    // 0: no limit
  uint32_t max_active_zones = 0;  // 0: no limit; never below max_open_zones
  uint64_t max_transfer = 0;      // bytes of one read or write, 0: no limit
  uint64_t max_append = 0;        // bytes of one zone append, 0: no limit
  uint32_t buffer_alignment = 1;  // bytes, a power of two: the alignment of `data` in a request
  uint64_t optimal_write = 0;     // bytes the medium programs at once, a good write size; at least block_size
  // Whether a write with Force Unit Access makes all of its zone before it durable, and not only its own bytes.
  bool fua_covers_zone = false;

  DeviceOffset ZoneStart(ZoneId zone) const { return DeviceOffset(zone.value() * zone_size); }
  ZoneId ZoneOf(DeviceOffset offset) const { return ZoneId(static_cast<uint32_t>(offset.value() / zone_size)); }
  uint64_t OffsetInZone(DeviceOffset offset) const { return offset.value() % zone_size; }
};

// One entry of Report Zones (ZNS 3.4.2).
struct ZoneDescriptor {
  ZoneId zone;
  ZoneState state = ZoneState::kEmpty;
  uint64_t capacity = 0;  // bytes
  // Bytes from the start of the zone to the write pointer; `capacity` if the zone is full. 0 (not valid) if the zone is
  // offline. If it is read-only, the bytes that can still be read.
  uint64_t write_pointer = 0;
};

enum class DeviceOp : uint8_t { kRead, kWrite, kAppend, kReset, kFinish, kOpen, kClose, kFlush };
std::string_view DeviceOpName(DeviceOp op);

// One command. The submitter owns the request and its buffer, and keeps both until `done` is called, which happens
// exactly once. `done` may run on the submitting thread before Submit returns, or on a thread of the device. It must be
// short, must not block, and must not submit and wait; it may free or resubmit the request.
struct DeviceRequest {
  DeviceOp op = DeviceOp::kRead;
  bool fua = false;           // kWrite, kAppend: durable when it completes; see fua_covers_zone
  DeviceOffset offset;        // kRead, kWrite: where; kFlush: ignored; all others: the start of the zone
  std::byte* data = nullptr;  // kRead: filled; kWrite, kAppend: read, never changed; all others: ignored
  uint64_t length = 0;        // bytes; whole blocks, more than 0 for kRead, kWrite, kAppend; all others: ignored
  bool may_block = false;     // Submit may take as long as the medium: the submitter would wait for it next anyway

  void (*done)(DeviceRequest& request) = nullptr;
  void* context = nullptr;  // for the submitter's use

  // Set by the device before it calls done.
  DeviceStatus status = DeviceStatus::kSuccess;
  DeviceOffset written_at;  // kAppend: where the data went
};

// Counts of what the device did since it was created, or, if it does not tell that, since it was opened: the part of
// SMART that Isozone needs.
struct DeviceCounters {
  uint64_t host_bytes_read = 0;
  uint64_t host_bytes_written = 0;   // writes and appends
  uint64_t media_bytes_written = 0;  // programmed to flash, including dummy bytes and garbage collection of the device
  // The bytes of media_bytes_written that hold no data: the device pads its flash where a zone ends, is finished or is
  // reset. They are 0 if the device does not tell.
  uint64_t dummy_bytes_written = 0;
  uint64_t resets = 0;
  uint64_t finishes = 0;
};

class ZonedDevice {
 public:
  virtual ~ZonedDevice() = default;

  virtual const DeviceGeometry& geometry() const = 0;
  // Returns the name that users know: "emu:/path/ssd.img".
  virtual std::string name() const = 0;
  virtual bool read_only() const = 0;

  // Starts `request`. Waits for the medium only if the request may block; may block shortly if the queue of the device
  // is full.
  virtual void Submit(DeviceRequest& request) = 0;

  // Fills `out` with the zones from `first` on. kInvalidArgument if the device has fewer zones.
  virtual Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const = 0;

  virtual DeviceCounters counters() const = 0;

  // Returns what the device says of itself, for people to read. It is empty if it is neither emulated nor of the
  // kernel.
  virtual DeviceDescription description() const { return {}; }
};

// Submits `request` and waits for it. Meant for control paths and tests; data paths keep many requests in flight.
DeviceStatus SubmitAndWait(ZonedDevice& device, DeviceRequest& request);

// Returns the status of a completed request as an error for users: "write of 4096 bytes in zone 12 at 8192 failed:
// Write Fault (280h)". It is OK for kSuccess, kReadOnly for kNamespaceWriteProtected, kNoSpace for what IsForLack holds
// of, kInvalidArgument for kInvalidField, and kIoError for all else.
Status ToStatus(const DeviceGeometry& geometry, const DeviceRequest& request);

}  // namespace isozone
