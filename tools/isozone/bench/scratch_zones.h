// Neighbouring empty zones that a benchmark may fill, and that are empty again afterwards.
//
// Without leave to destroy, only empty zones are taken that the file system on the device has not set aside (or, where
// there is none, that one would begin with), so that it stays whole: at worst, if the process is killed, it finds zones
// written in which it owns nothing, as after a power cut, and resets them.
#pragma once

#include <cstdint>
#include <vector>

#include "device/zoned_device.h"

namespace isozone::cli {

class ScratchZones {
 public:
  // The first run of `count` empty zones; with `destroy` the first zones of the device, reset whatever is in them.
  // kNoSpace, saying how many there are, where there is no such run. `device` outlives the zones.
  static Result<ScratchZones> Take(ZonedDevice& device, uint32_t count, bool destroy);
  ScratchZones(ScratchZones&& other) noexcept;
  ScratchZones& operator=(ScratchZones&&) = delete;
  // Resets what Release did not.
  ~ScratchZones();

  ZoneId zone(uint32_t index) const { return ZoneId(first_.value() + index); }
  // Empties the zone.
  Status Reset(uint32_t index);
  // Empties every zone that is not.
  Status Release();

 private:
  ScratchZones(ZonedDevice& device, ZoneId first, uint32_t count) : device_(&device), first_(first), count_(count) {}

  ZonedDevice* device_;  // null once released or moved from
  ZoneId first_;
  uint32_t count_;
};

}  // namespace isozone::cli
