#include "device/emulated/device_options.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace isozone {
namespace {

constexpr uint64_t kMaxLimit = std::numeric_limits<uint32_t>::max();
// Used if a profile does not say what the medium programs at once.
constexpr uint64_t kDefaultOptimalWrite = 128 * kKiB;

Status CheckWish(std::string_view key, const std::optional<uint64_t>& wish, uint64_t actual) {
  if (!wish || *wish == actual) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("option {}={} contradicts the image, which has {}; leave the option out, or create another image",
                  key, *wish, actual));
}

Status CheckProfileWish(const GeometryWishes& wishes, const ImageInfo& image) {
  if (!wishes.profile) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const Profile wished, LoadProfile(*wishes.profile));
  std::string actual = "none";
  if (!image.profile_text.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(const Profile profile, ParseProfile(image.profile_text, "the image's profile"));
    actual = profile.name;
  }
  if (wished.name == actual) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "option profile={} contradicts the image, which has profile {}; leave the option out, or create another image",
      wished.name, actual));
}

}  // namespace

Result<EmulatedOptions> TakeEmulatedOptions(UriOptions& options) {
  EmulatedOptions taken;
  ISOZONE_ASSIGN_OR_RETURN(taken.timing, options.TakeBool("timing"));
  ISOZONE_ASSIGN_OR_RETURN(const auto speed, options.TakeReal("speed", 0.001, 1000.0));
  if (speed) taken.speed = *speed;
  // A speed is that of a device with timing, whatever the image remembers.
  if (speed && !taken.timing) taken.timing = true;
  if (const auto sync = options.Take("sync")) {
    if (*sync != "process" && *sync != "disk") {
      return Status::InvalidArgument(fmt::format("option sync={}: write process or disk", *sync));
    }
    taken.sync = *sync == "disk" ? ImageSync::kDisk : ImageSync::kProcess;
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto foreign, options.TakeUnsigned("foreign_active", 0, kMaxLimit));
  taken.foreign_active = static_cast<uint32_t>(foreign.value_or(0));
  ISOZONE_ASSIGN_OR_RETURN(taken.faults, TakeFaultPlan(options));
  return taken;
}

Result<GeometryWishes> TakeGeometryWishes(UriOptions& options) {
  GeometryWishes wishes;
  wishes.profile = options.Take("profile");
  ISOZONE_ASSIGN_OR_RETURN(wishes.zones, options.TakeUnsigned("zones", 1, kMaxZoneCount));
  ISOZONE_ASSIGN_OR_RETURN(wishes.zone_size, options.TakeSize("zone_size", 512, kMaxZoneSize));
  ISOZONE_ASSIGN_OR_RETURN(wishes.zone_capacity, options.TakeSize("zone_capacity", 512, kMaxZoneSize));
  ISOZONE_ASSIGN_OR_RETURN(wishes.block_size, options.TakeSize("block_size", 512, 65536));
  ISOZONE_ASSIGN_OR_RETURN(wishes.max_open, options.TakeUnsigned("max_open", 0, kMaxLimit));
  ISOZONE_ASSIGN_OR_RETURN(wishes.max_active, options.TakeUnsigned("max_active", 0, kMaxLimit));
  ISOZONE_ASSIGN_OR_RETURN(wishes.fua_covers_zone, options.TakeBool("fua_covers_zone"));
  return wishes;
}

Result<Profile> ResolveProfile(const GeometryWishes& wishes) {
  ISOZONE_ASSIGN_OR_RETURN(Profile profile, LoadProfile(wishes.profile.value_or("small-zone")));
  if (!profile.zoned()) {
    return Status::InvalidArgument(
        fmt::format("profile {} is of a conventional SSD, which is not zoned; use it as isozone-conventional://dir, or "
                    "take a zoned profile, such as small-zone",
                    profile.name));
  }
  const bool pads_whole = profile.finish_padding == profile.zone_capacity;
  profile.zone_count = static_cast<uint32_t>(wishes.zones.value_or(profile.zone_count));
  profile.block_size = static_cast<uint32_t>(wishes.block_size.value_or(profile.block_size));
  if (wishes.zone_size) {
    const double filling = static_cast<double>(profile.zone_capacity) / static_cast<double>(profile.zone_size);
    const bool whole = profile.zone_capacity == profile.zone_size;
    const auto scaled = static_cast<uint64_t>(filling * static_cast<double>(*wishes.zone_size));
    profile.zone_size = *wishes.zone_size;
    profile.zone_capacity =
        whole ? profile.zone_size : std::max<uint64_t>(profile.block_size, RoundDown(scaled, profile.block_size));
  }
  profile.zone_capacity = wishes.zone_capacity.value_or(profile.zone_capacity);
  if (pads_whole) profile.finish_padding = profile.zone_capacity;
  profile.max_active_zones = static_cast<uint32_t>(wishes.max_active.value_or(profile.max_active_zones));
  if (profile.max_active_zones != 0)
    profile.max_open_zones = std::min(profile.max_open_zones, profile.max_active_zones);
  profile.max_open_zones = static_cast<uint32_t>(wishes.max_open.value_or(profile.max_open_zones));
  profile.fua_covers_zone = wishes.fua_covers_zone.value_or(profile.fua_covers_zone);
  ISOZONE_RETURN_IF_ERROR(CheckGeometry(GeometryOf(profile)));
  return profile;
}

Status CheckWishes(const GeometryWishes& wishes, const ImageInfo& image) {
  const DeviceGeometry& g = image.geometry;
  ISOZONE_RETURN_IF_ERROR(CheckProfileWish(wishes, image));
  ISOZONE_RETURN_IF_ERROR(CheckWish("zones", wishes.zones, g.zone_count));
  ISOZONE_RETURN_IF_ERROR(CheckWish("zone_size", wishes.zone_size, g.zone_size));
  ISOZONE_RETURN_IF_ERROR(CheckWish("zone_capacity", wishes.zone_capacity, g.zone_capacity));
  ISOZONE_RETURN_IF_ERROR(CheckWish("block_size", wishes.block_size, g.block_size));
  ISOZONE_RETURN_IF_ERROR(CheckWish("max_open", wishes.max_open, g.max_open_zones));
  ISOZONE_RETURN_IF_ERROR(CheckWish("max_active", wishes.max_active, g.max_active_zones));
  if (!wishes.fua_covers_zone || *wishes.fua_covers_zone == g.fua_covers_zone) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("option fua_covers_zone={} contradicts the image, which has it {}; leave the option out, or create "
                  "another image",
                  g.fua_covers_zone ? "off" : "on", g.fua_covers_zone ? "on" : "off"));
}

DeviceGeometry GeometryOf(const Profile& profile) {
  DeviceGeometry geometry{.block_size = profile.block_size,
                          .zone_count = profile.zone_count,
                          .zone_size = profile.zone_size,
                          .zone_capacity = profile.zone_capacity,
                          .max_open_zones = profile.max_open_zones,
                          .max_active_zones = profile.max_active_zones,
                          .max_transfer = profile.max_transfer,
                          .max_append = profile.max_append,
                          .fua_covers_zone = profile.fua_covers_zone};
  const uint64_t unit = profile.timing ? profile.program_unit : kDefaultOptimalWrite;
  uint64_t limit = profile.zone_capacity;
  if (profile.max_transfer != 0) limit = std::min(limit, profile.max_transfer);
  geometry.optimal_write = std::max<uint64_t>(profile.block_size, RoundDown(std::min(unit, limit), profile.block_size));
  return geometry;
}

}  // namespace isozone
