// ScratchZones: adjacent empty zones that a benchmark may fill, and that are empty again afterwards.
//
// Unless `destroy` is set, only empty zones are taken that the file system on the device has not reserved (if there is
// none, that a new one would not begin with). So the file system stays intact: at worst, if the process is killed, it
// finds written zones that belong to none of its files, as after a power cut, and resets them.
#pragma once

#include <cstdint>
#include <vector>

#include "device/zoned_device.h"

namespace isozone::cli {

class ScratchZones {
 public:
  // Takes the first run of `count` empty zones; with `destroy`, resets and takes the first zones of the device,
  // whatever is in them. kNoSpace, with the number of such zones, if there is no such run. `device` must outlive the
  // zones.
  static Result<ScratchZones> Take(ZonedDevice& device, uint32_t count, bool destroy);
  ScratchZones(ScratchZones&& other) noexcept;
  ScratchZones& operator=(ScratchZones&&) = delete;
  // Resets the zones that Release did not.
  ~ScratchZones();

  ZoneId zone(uint32_t index) const { return ZoneId(first_.value() + index); }
  // Empties the zone.
  Status Reset(uint32_t index);
  // Empties every zone that is not empty.
  Status Release();

 private:
  ScratchZones(ZonedDevice& device, ZoneId first, uint32_t count) : device_(&device), first_(first), count_(count) {}

  ZonedDevice* device_;  // null once released or moved from
  ZoneId first_;
  uint32_t count_;
};

}  // namespace isozone::cli
