#include "isozone/session.h"

#include <utility>

#include "base/uri.h"

namespace isozone::cli {
namespace {

Status AsUnusable(const Status& status, StatusCode code) {
  return status.Is(code) ? Status::NotSupported(std::string(status.message())) : status;
}

}  // namespace

Result<OpenedDevice> OpenByUri(const std::string& uri, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(Uri parsed, ParseUri(uri));
  OpenedDevice opened;
  ISOZONE_ASSIGN_OR_RETURN(opened.mount_options, MountOptions::FromUri(parsed.options));
  // A URI may be copied from a database. Its options for RocksDB's own files do not matter to these tools.
  parsed.options.Take("log_dir");
  parsed.options.Take("stats_file");
  ISOZONE_ASSIGN_OR_RETURN(const auto read_only, parsed.options.TakeBool("read_only"));
  if (read_only.value_or(false) && mode == OpenMode::kReadWrite) {
    return Status::ReadOnly("the URI says read_only=on, and this command writes");
  }
  opened.mount_options.read_only = mode == OpenMode::kReadOnly;
  auto device = OpenDevice(parsed, mode);
  // Where there is no device, or a damaged image, every option has been taken that it could have.
  const bool options_are_taken =
      device.ok() || device.status().Is(StatusCode::kNotFound) || device.status().Is(StatusCode::kCorruption);
  if (options_are_taken) ISOZONE_RETURN_IF_ERROR(parsed.options.RejectUnknown());
  if (!device.ok()) return AsUnusable(device.status(), StatusCode::kCorruption);
  opened.device = std::move(device).value();
  return opened;
}

Result<std::unique_ptr<FileSystem>> MountOpened(OpenedDevice opened) {
  auto mounted = FileSystem::Mount(std::move(opened.device), opened.mount_options);
  if (!mounted.ok()) return AsUnusable(mounted.status(), StatusCode::kNotFound);
  return mounted;
}

Result<std::unique_ptr<FileSystem>> MountByUri(const std::string& uri, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenByUri(uri, mode));
  return MountOpened(std::move(opened));
}

std::optional<Profile> ProfileOf(const ZonedDevice& device) {
  const auto emulation = device.description().emulation;
  if (!emulation) return std::nullopt;
  auto profile = ParseProfile(emulation->profile_text, device.name());
  if (!profile.ok()) return std::nullopt;
  return std::move(profile).value();
}

}  // namespace isozone::cli
