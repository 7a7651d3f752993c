// The options of an emulated SSD in a URI: how to run it, and what it should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/uri.h"
#include "device/emulated/faults.h"
#include "device/emulated/image_format.h"
#include "device/emulated/nand/profile.h"

namespace isozone {

enum class ImageSync : uint8_t {
  kProcess,  // durable data survives the process; a crash of the host may lose it
  kDisk,     // durable data also survives the host: flush, fua, reset, finish, open and close sync the image file
};

// The options with which a device is run: timing=, speed=, sync=, foreign_active=, and the keys of FaultPlan. An image
// remembers the timing and the sync that it was made with.
struct EmulatedOptions {
  std::optional<bool> timing;     // absent: as the image was made; else as the profile says
  std::optional<ImageSync> sync;  // absent: as the image was made; else kProcess
  double speed = 1;               // how many times as fast as the profile
  uint32_t foreign_active = 0;    // open zones, of those that the device allows, that another user holds
  FaultPlan faults;
};
Result<EmulatedOptions> TakeEmulatedOptions(UriOptions& options);

// The geometry that a device should have. For a new device these values replace those of its profile; an existing
// device must have them. profile=, zones=, zone_size=, zone_capacity=, block_size=, max_open=, max_active=,
// fua_covers_zone=.
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

// Returns the profile of a new device: small-zone if none is given. A zone size without a capacity scales the capacity,
// and an active limit without an open limit lowers the open limit to it.
Result<Profile> ResolveProfile(const GeometryWishes& wishes);
// Fails with kInvalidArgument, which has both values, if `image` does not have a value that was asked for.
Status CheckWishes(const GeometryWishes& wishes, const ImageInfo& image);

DeviceGeometry GeometryOf(const Profile& profile);

}  // namespace isozone
