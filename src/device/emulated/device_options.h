// What a URI says about an emulated SSD: how to run it, and what it should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/uri.h"
#include "device/emulated/faults.h"
#include "device/emulated/image_format.h"
#include "nand/profile.h"

namespace isozone {

enum class ImageSync : uint8_t {
  kProcess,  // what is durable survives the process; a crash of the host may take it
  kDisk,     // and survives the host: flush, fua, reset, finish, open and close sync the image file
};

// How to run a device that exists: timing=, speed=, sync=, foreign_active=, and the keys of FaultPlan.
struct EmulatedOptions {
  std::optional<bool> timing;  // absent: as the profile says
  double speed = 1;            // how many times as fast as the profile
  ImageSync sync = ImageSync::kProcess;
  uint32_t foreign_active = 0;  // open zones that somebody else holds of those that the device allows
  FaultPlan faults;
};
Result<EmulatedOptions> TakeEmulatedOptions(UriOptions& options);

// What a device should be: a new one, in place of what its profile says, or else one that exists. profile=, zones=,
// zone_size=, zone_capacity=, block_size=, max_open=, max_active=, fua_covers_zone=.
struct GeometryWishes {
  std::optional<std::string> profile;  // name or path
  std::optional<uint64_t> zones;
  std::optional<uint64_t> zone_size;      // bytes
  std::optional<uint64_t> zone_capacity;  // bytes
  std::optional<uint64_t> block_size;     // bytes
  std::optional<uint64_t> max_open;
  std::optional<uint64_t> max_active;
  std::optional<bool> fua_covers_zone;
};
Result<GeometryWishes> TakeGeometryWishes(UriOptions& options);

// The profile of a new device: small-zone where none is wished. A zone size without a capacity scales the capacity, an
// active limit without an open limit lowers the open limit to it.
Result<Profile> ResolveProfile(const GeometryWishes& wishes);
// kInvalidArgument naming both values where `image` is not as wished.
Status CheckWishes(const GeometryWishes& wishes, const ImageInfo& image);

DeviceGeometry GeometryOf(const Profile& profile);

}  // namespace isozone
