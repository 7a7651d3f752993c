#include "device/open_device.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "device/emulated/device_options.h"
#include "device/emulated/emulated_device.h"
#include "device/linux/block_device_node.h"
#include "device/linux/open_linux_device.h"
#include "device/zonefs/open_zonefs.h"

namespace isozone {
namespace {

Status CheckScheme(const Uri& uri) {
  if (uri.scheme == "dev") {
    if (uri.path.starts_with('/')) return Status::Ok();
    return Status::InvalidArgument("dev: needs the path of a zoned block device; write dev:/dev/nvme0n2");
  }
  if (uri.scheme == "zonefs") {
    if (uri.path.starts_with('/')) return Status::Ok();
    return Status::InvalidArgument("zonefs: needs the path where a zoned device is mounted; write zonefs:/mnt/z");
  }
  if (uri.scheme != "emu") {
    return Status::NotSupported(
        fmt::format("unknown device scheme '{}'; write dev:/dev/nvme0n2, a zoned block device, zonefs:/mnt/z, one that "
                    "is mounted, or "
                    "emu:/path/ssd.img, an emulated SSD",
                    uri.scheme));
  }
  if (uri.path.empty()) return Status::InvalidArgument("emu: needs the path of an image; write emu:/path/ssd.img");
  return Status::Ok();
}

bool IsOfDeviceNodes(std::string_view path) { return path.starts_with("/dev/") && !path.starts_with("/dev/shm/"); }

// The profile of a new device at `path`, which fills a block device unless it shall have a number of zones.
Result<Profile> ProfileFor(const std::string& path, const GeometryWishes& wishes) {
  ISOZONE_ASSIGN_OR_RETURN(Profile profile, ResolveProfile(wishes));
  if (!IsBlockDevice(path)) return profile;
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t bytes, SizeOfBlockDevice(path));
  if (wishes.zones) {
    ISOZONE_RETURN_IF_ERROR(CheckImageFits(GeometryOf(profile), path, bytes));
    return profile;
  }
  const uint32_t zones = ZonesThatFit(GeometryOf(profile), bytes);
  if (zones == 0) {
    return Status::NotSupported(fmt::format("{} has no room for a zone of {}; write a smaller zone_size=", path,
                                            FormatSize(profile.zone_size)));
  }
  profile.zone_count = zones;
  return profile;
}

}  // namespace

Result<std::unique_ptr<ZonedDevice>> OpenDevice(Uri& uri, OpenMode mode) {
  ISOZONE_RETURN_IF_ERROR(CheckScheme(uri));
  if (uri.scheme == "dev") {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<LinuxDevice> device, OpenLinuxDevice(uri, mode));
    return std::unique_ptr<ZonedDevice>(std::move(device));
  }
  if (uri.scheme == "zonefs") {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<LinuxDevice> device, OpenZonefs(uri, mode));
    return std::unique_ptr<ZonedDevice>(std::move(device));
  }
  ISOZONE_ASSIGN_OR_RETURN(const EmulatedOptions options, TakeEmulatedOptions(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(const GeometryWishes wishes, TakeGeometryWishes(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedDevice> device, EmulatedDevice::Open(uri.path, mode, options));
  if (const Status wished = CheckWishes(wishes, device->image_info()); !wished.ok()) {
    return wished.WithContext(uri.path);
  }
  return std::unique_ptr<ZonedDevice>(std::move(device));
}

Status CreateDevice(Uri& uri, const std::function<Status(const DeviceGeometry&)>& fits, UnusableImage unusable) {
  ISOZONE_RETURN_IF_ERROR(CheckScheme(uri));
  if (uri.scheme == "dev") return CheckLinuxDevice(uri);
  if (uri.scheme == "zonefs") return CheckZonefs(uri);
  ISOZONE_ASSIGN_OR_RETURN(const EmulatedOptions remembered, TakeEmulatedOptions(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(const GeometryWishes wishes, TakeGeometryWishes(uri.options));
  // What is made in the folder of device nodes would lie in memory.
  if (IsOfDeviceNodes(uri.path) && !std::filesystem::exists(uri.path)) {
    return Status::NotFound(fmt::format("there is no device {}; name one, or a file in another folder", uri.path));
  }
  auto existing = ImageFile::Open(uri.path, OpenMode::kReadOnly);
  const bool replaces = unusable == UnusableImage::kReplace && ImageFile::IsUnusable(uri.path, existing.status());
  if (existing.status().Is(StatusCode::kNotFound) || replaces) {
    ISOZONE_ASSIGN_OR_RETURN(const Profile profile, ProfileFor(uri.path, wishes));
    if (fits) ISOZONE_RETURN_IF_ERROR(fits(GeometryOf(profile)));
    if (replaces) ISOZONE_RETURN_IF_ERROR(ImageFile::Erase(uri.path));
    Status created = EmulatedDevice::CreateImage(uri.path, profile, remembered);
    if (!created.Is(StatusCode::kAlreadyExists)) return created;
    existing = ImageFile::Open(uri.path, OpenMode::kReadOnly);  // another process was faster
  }
  if (!existing.ok()) return existing.status();
  const Status wished = CheckWishes(wishes, (*existing)->info());
  return wished.ok() ? wished : wished.WithContext(uri.path);
}

}  // namespace isozone
