// CrashDevice: a zoned SSD in memory that remembers the state before each command, so that every state that a power cut
// may leave behind can be built afterwards, without running anything again.
//
// Commands complete before Submit returns. They follow the rules of zoned_device.h, through the state machine of the
// emulated device. An image shares the bytes of zones with the device and with other images. A zone is only ever
// written behind its write pointer, so the bytes in an image never change; a device that writes to a zone which it does
// not own copies it first. Taking and opening an image costs microseconds.
//
// What a power cut leaves (docs/fault-model.md):
//
//   the request in flight   a write: nothing, some of its blocks, all; a reset, finish, open or close: done or not
//   the volatile cache      of each zone everything, only what is durable, or half; of one zone all and of the others
//                           nothing, and the reverse
//
// If Force Unit Access covers only its own command, blocks below it that were not flushed may be lost while it
// survives; they then read as zeros.
//
// Thread safety: a device may be used from any thread; an image is a value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "crash/turns.h"
#include "device/emulated/zone_state_machine.h"
#include "device/zoned_device.h"

namespace isozone::crash {

// What a write with Force Unit Access makes durable.
enum class Fua : uint8_t {
  kZone,     // all of its zone up to its own end
  kCommand,  // its own blocks
  kNone,     // nothing, which no device may do; shows that the tests find it
};

struct ZoneImage {
  ZoneState state = ZoneState::kEmpty;
  uint64_t written = 0;                               // bytes
  uint64_t durable = 0;                               // bytes from the start of the zone that are flushed
  std::vector<std::pair<uint64_t, uint64_t>> forced;  // begin and end of durable ranges beyond that
  std::shared_ptr<std::vector<std::byte>> bytes;      // at least `written` of them; null: none
  uint64_t cached() const { return written - durable; }
};

struct DeviceImage {
  DeviceGeometry geometry;
  Fua fua = Fua::kZone;
  std::vector<ZoneImage> zones;
};

// A command that changes something, with the device before it and the command's zone after it.
struct Command {
  DeviceOp op = DeviceOp::kFlush;
  ZoneId zone;          // not of kFlush
  uint64_t begin = 0;   // kWrite, kAppend: bytes from the start of the zone
  uint64_t blocks = 0;  // kWrite, kAppend
  bool fua = false;
  std::vector<ZoneImage> before;
  ZoneImage after;
};

// One way in which a power cut may end.
struct Outcome {
  enum class Cache : uint8_t { kKept, kLost, kHalf, kZoneLost, kZoneKept };
  uint64_t blocks = 0;  // stored blocks of the write in flight; for another request, 1 if it has happened
  Cache cache = Cache::kKept;
  ZoneId zone;  // kZoneLost, kZoneKept: which

  // "2:kept", "0:lost-of:7", in the form that Parse takes.
  std::string ToString() const;
  static std::optional<Outcome> Parse(const std::string& text);
  bool operator==(const Outcome&) const = default;
};

class CrashDevice final : public ZonedDevice {
 public:
  // An empty device.
  static DeviceImage Blank(const DeviceGeometry& geometry, Fua fua);

  // `records`: remembers the state before each command, and takes commands in turns (turns.h), whose owner is the
  // calling thread.
  CrashDevice(const DeviceImage& image, bool records);

  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "crash"; }
  bool read_only() const override { return false; }
  void Submit(DeviceRequest& request) override;
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override;
  DeviceCounters counters() const override { return {}; }

  // The device as it is now, with its power on.
  DeviceImage Image() const;
  // Waits until the file system has nothing more to do. Returns the commands since the last call that changed
  // something, in the order in which they were executed. If the device records, only the owner may call it.
  std::vector<Command> TakeCommands();

 private:
  DeviceStatus Execute(DeviceRequest& request) ISOZONE_REQUIRES(mu_);
  DeviceStatus Read(const DeviceRequest& request) const ISOZONE_REQUIRES(mu_);
  DeviceStatus Write(DeviceRequest& request) ISOZONE_REQUIRES(mu_);
  DeviceStatus ManageZone(DeviceOp op, ZoneId id) ISOZONE_REQUIRES(mu_);
  void Force(ZoneImage& zone, uint64_t begin) ISOZONE_REQUIRES(mu_);
  ZoneImage Now(ZoneId id) const ISOZONE_REQUIRES(mu_);
  std::vector<ZoneImage> AllNow() const ISOZONE_REQUIRES(mu_);

  const DeviceGeometry geometry_;
  const Fua fua_;
  const std::unique_ptr<Turns> turns_;  // null: it does not record
  mutable Mutex mu_;
  std::vector<ZoneEntry> table_ ISOZONE_GUARDED_BY(mu_);
  ZoneStateMachine machine_ ISOZONE_GUARDED_BY(mu_);
  std::vector<ZoneImage> zones_ ISOZONE_GUARDED_BY(mu_);  // their states and write pointers are in the table
  std::vector<bool> owned_ ISOZONE_GUARDED_BY(mu_);       // by zone: nothing beyond its write pointer is in an image
  std::vector<Command> commands_ ISOZONE_GUARDED_BY(mu_);
};

// Every outcome of a cut while `command` is in flight; equal images only once.
std::vector<std::pair<Outcome, DeviceImage>> CutIn(const DeviceImage& device, const Command& command);
// The same with no request in flight.
std::vector<std::pair<Outcome, DeviceImage>> CutAfter(const DeviceImage& device);

// Distinguishes the images of one run: equal images have equal fingerprints.
std::string Fingerprint(const DeviceImage& image);

}  // namespace isozone::crash
