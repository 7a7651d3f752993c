#include <memory>
#include <string>
#include <utility>

#include "fs/file_system.h"
#include "fs/mount/format_device.h"
#include "isozone/command.h"
#include "isozone/output/report.h"
#include "isozone/session.h"
#include "zone/allocator/zone_reserves.h"

namespace isozone::cli {
namespace {

constexpr int kMaxLabelBytes = 63;

struct MkfsArguments {
  std::string device;
  FormatOptions format;
  bool json = false;
};

// The error of a device that cannot be used, while the command was correct.
Status AsNotSupported(const Status& status) {
  return status.Is(StatusCode::kInvalidArgument) ? Status::NotSupported(std::string(status.message())) : status;
}

// Looks for the device first, which checks every option: a mistyped option must not leave an image of another shape.
Result<OpenedDevice> OpenOrCreate(const std::string& text) {
  auto found = OpenByUri(text, OpenMode::kReadWrite);
  if (!found.status().Is(StatusCode::kNotFound)) return found;
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
  ISOZONE_RETURN_IF_ERROR(
      CreateDevice(uri, [](const DeviceGeometry& geometry) { return AsNotSupported(CheckDeviceFits(geometry)); }));
  return OpenByUri(text, OpenMode::kReadWrite);
}

Status Mkfs(const MkfsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenOrCreate(arguments.device));
  ISOZONE_RETURN_IF_ERROR(AsNotSupported(FormatDevice(*opened.device, arguments.format)));
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountOpened(std::move(opened)));

  const DeviceGeometry& geometry = file_system->state().device().geometry();
  const SpaceInfo space = file_system->state().Space();
  if (arguments.json) {
    console.PrintJson({{"device", file_system->state().device().name()},
                       {"label", file_system->state().label()},
                       {"uuid", file_system->state().uuid()},
                       {"zones", geometry.zone_count},
                       {"zone_capacity", geometry.zone_capacity},
                       {"capacity", space.capacity},
                       {"free", space.free},
                       {"metadata", MetadataJson(file_system->state().Metadata())}});
  } else {
    console.Print("{} is formatted: {} zones of {}, {} free{}\n", file_system->state().device().name(),
                  geometry.zone_count, FormatSize(geometry.zone_capacity), FormatSize(space.free),
                  file_system->state().label().empty() ? "" : ", label " + Printable(file_system->state().label()));
    console.Print("Use it with RocksDB as --fs_uri='isozone://{}'\n", arguments.device);
  }
  return file_system->Unmount();
}

}  // namespace

Action DefineMkfs(CLI::App& app) {
  auto arguments = std::make_shared<MkfsArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("--label", arguments->format.label, "Name for people, up to 63 bytes")
      ->check(
          [](const std::string& label) {
            return label.size() <= kMaxLabelBytes ? "" : fmt::format("longer than {} bytes", kMaxLabelBytes);
          },
          "")
      ->option_text("TEXT");
  app.add_option("--metadata-copies", arguments->format.metadata_copies,
                 "Copies of the metadata, in different zones: 1 or 2")
      ->check(CLI::Range(1, 2), "")
      ->option_text("N [2]");
  app.add_flag("--force", arguments->format.force,
               "Format even if the device carries a file system: all of it is lost");
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Mkfs(*arguments, console); };
}

}  // namespace isozone::cli
