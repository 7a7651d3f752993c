// The zone state machine of NVMe ZNS (revision 1.1, 2.1.1.2) over the zone table of an image: which command is legal in
// which state, its effect on the state, and the open and active resources (2.1.1.3). No data, no I/O, no threads.
//
//   empty --write, append--> implicitly open --open--> explicitly open
//     |  \--open--------------------------------------------^
//     |                      either open --close--> closed --write, append, open--> open again
//     |                      either open or closed, when written up--> full
//     \--finish--> full;     open or closed --finish--> full;     anything but these: --reset--> empty
//   read-only and offline are entered by the medium (Force), and no command here leaves them.
//
// Open zones hold an open and an active resource, closed zones an active one. If a command needs an open resource and
// none is left, it takes that of the implicitly open zone that was opened first, which becomes closed. Explicitly open
// zones never lose theirs.
//
// Invariant: the counters agree with the table, and neither exceeds its limit, foreign zones included. The exception is
// zones that were open when SetForeign lowered the limit.
// Thread safety: the owner serialises calls. Any thread may read the words of the table at any time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/emulated/image_format.h"
#include "device/zoned_device.h"

namespace isozone {

class ZoneStateMachine {
 public:
  // `table` must outlive this object and have passed CheckZoneTable. The image must come from a device with the same
  // limits.
  ZoneStateMachine(const DeviceGeometry& geometry, std::span<ZoneEntry> table);

  // Checks a write of `length` bytes at `offset` of the zone, or an append, and opens the zone for it. On success the
  // caller stores the data behind the bytes written so far and calls EndWrite(); if it could not store the data, it
  // calls AbandonWrite(). Offsets and lengths are whole blocks; length > 0.
  DeviceStatus BeginWrite(ZoneId zone, uint64_t offset, uint64_t length);
  DeviceStatus BeginAppend(ZoneId zone, uint64_t length);
  // Moves the write pointer over data that is now stored. The zone becomes full at its capacity.
  void EndWrite(ZoneId zone, uint64_t length);
  // Ends a write of which nothing was stored. A zone that was empty before is empty again.
  void AbandonWrite(ZoneId zone);

  DeviceStatus Open(ZoneId zone);
  DeviceStatus Close(ZoneId zone);
  DeviceStatus Finish(ZoneId zone);
  DeviceStatus Reset(ZoneId zone);
  // Returns the status that Open, Close, Finish or Reset (`op`) would return now, except for resource limits.
  DeviceStatus Check(DeviceOp op, ZoneId zone) const;

  // Makes the zone kReadOnly or kOffline, whatever its state is, as the medium does.
  void Force(ZoneId zone, ZoneState state);

  // Is called when power comes back after a cut, with the bytes of the zone that `survived`. An open zone becomes
  // closed, or empty if nothing survived. A full zone that lost data becomes closed. If no active resource is left for
  // that, the device has finished the zone: it stays full, with less data.
  void LosePower(ZoneId zone, uint64_t survived);

  // Lets another user that shares the limits (another namespace of the controller) hold `zones` open, and so active,
  // zones.
  void SetForeign(uint32_t zones) { foreign_ = zones; }

  uint32_t open_zones() const { return open_; }
  uint32_t active_zones() const { return active_; }

 private:
  ZoneEntry& Entry(ZoneId zone) { return table_[zone.value()]; }
  ZoneContent Content(ZoneId zone) const { return LoadContent(table_[zone.value()]); }
  // Stores `content`, and updates the counters and the order of opening.
  void Become(ZoneId zone, ZoneContent content);
  // Makes `zone` open, and takes the resources that it does not hold yet.
  DeviceStatus TakeOpen(ZoneId zone, ZoneState target);
  DeviceStatus CheckWritable(ZoneContent content, uint64_t offset, uint64_t length) const;

  const uint64_t capacity_;
  const uint32_t max_open_;
  const uint32_t max_active_;
  const std::span<ZoneEntry> table_;
  uint32_t open_ = 0;
  uint32_t active_ = 0;
  uint32_t foreign_ = 0;
  std::vector<ZoneId> implicitly_open_;  // in order of opening; kept only if the number of open zones is limited
};

}  // namespace isozone
