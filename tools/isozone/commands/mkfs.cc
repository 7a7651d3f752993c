#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/uri.h"
#include "device/emulated/image_file.h"
#include "device/linux/block_device_node.h"
#include "device/linux/signatures.h"
#include "isozone/command.h"
#include "isozone/output/report.h"
#include "isozone/session.h"
#include "store/file_system.h"
#include "store/metadata/superblock.h"
#include "store/mount/format_device.h"
#include "store/zone/allocator/zone_reserves.h"

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

// Whether anything is written in a zone that can be erased. ProbeDevice looks only where file systems begin.
Result<bool> IsWritten(const ZonedDevice& device) {
  std::vector<ZoneDescriptor> zones(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), zones));
  return std::any_of(zones.begin(), zones.end(), [](const ZoneDescriptor& zone) {
    return zone.write_pointer > 0 && (IsActive(zone.state) || zone.state == ZoneState::kFull);
  });
}

// What formatting would destroy, in words; empty if the device holds nothing.
std::vector<std::string> ContentOf(ZonedDevice& device, const std::vector<Signature>& signatures) {
  std::vector<std::string> content;
  for (const Signature& signature : signatures) content.push_back(Printable(signature.Text()));
  const auto begins_with = ProbeDevice(device);
  const auto written = IsWritten(device);
  if (!begins_with.ok() || !written.ok()) {
    content.emplace_back("data that cannot be read");
  } else if (*begins_with == DeviceContent::kIsozone) {
    content.emplace_back("an Isozone file system");
  } else if (*begins_with == DeviceContent::kZenFs) {
    content.emplace_back("a ZenFS file system");
  } else if ((*begins_with == DeviceContent::kUnknown || *written) && content.empty()) {
    content.emplace_back("data of a kind that is not known");
  }
  return content;
}

// Asks a person; true if nobody is there to be asked.
bool MayErase(const std::string& device, const std::vector<std::string>& content) {
  fmt::print(stderr, "{} holds {}.\n", Printable(device), fmt::join(content, "; "));
  if (::isatty(STDIN_FILENO) == 0) return true;
  fmt::print(stderr, "Erase all of it? Write yes: ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes";
}

// OK if the content of a device may be erased, or there is none.
Status CheckErase(const std::string& device, const std::vector<std::string>& content, bool force) {
  if (content.empty()) return {};
  if (!force) {
    return Status::AlreadyExists(fmt::format("{} carries {}: use --force to erase it", device, content.front()));
  }
  if (!MayErase(device, content)) return Status::AlreadyExists(fmt::format("{} was left as it is", device));
  return {};
}

// What lies where the image of an emulated SSD begins, in words; empty if nothing does.
Result<std::string> BeginningOf(const std::string& path) {
  std::vector<char> begin(kMiB);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && !file.eof()) {
    return Status::IoError(fmt::format("cannot read {}", path));
  }
  if (BeginsImage(std::as_bytes(std::span(begin)))) return std::string("an image of an emulated SSD, damaged");
  const bool has_data = std::any_of(begin.begin(), begin.end(), [](char byte) { return byte != 0; });
  return std::string(has_data ? "data of a kind that is not known" : "");
}

// A block device that is to carry an image may carry what others have written. Nobody else can use it meanwhile.
Status ClearForImage(const std::string& path, bool force) {
  ISOZONE_ASSIGN_OR_RETURN(const BlockDeviceNode node, FindBlockDevice(path));
  ISOZONE_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenBlockDevice(node, OpenMode::kReadWrite, 0));
  const std::string opened = fmt::format("/proc/self/fd/{}", fd.get());
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<Signature> signatures, FindSignatures(opened, path));
  ISOZONE_ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(opened));
  std::vector<std::string> content;
  for (const Signature& signature : signatures) content.push_back(Printable(signature.Text()));
  if (content.empty() && !beginning.empty()) content.push_back(beginning);
  ISOZONE_RETURN_IF_ERROR(CheckErase(path, content, force));
  return EraseSignatures(opened, path);
}

// Looks for the device first, which checks every option: a mistyped option must not leave an image of another shape.
Result<OpenedDevice> OpenOrCreate(const std::string& text, bool force) {
  auto found = OpenByUri(text, OpenMode::kReadWrite);
  if (found.ok()) return found;
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
  const std::string path = uri.path;
  const bool on_block_device = uri.scheme == "emu" && IsBlockDevice(path);
  const bool is_unusable = on_block_device && ImageFile::IsUnusable(path, found.status());
  if (!found.status().Is(StatusCode::kNotFound) && !is_unusable) return found;
  if (is_unusable && !force) {
    return Status::AlreadyExists(fmt::format("{}; use --force to erase it", found.status().message()));
  }
  ISOZONE_RETURN_IF_ERROR(CreateDevice(
      uri,
      [&](const DeviceGeometry& geometry) -> Status {
        ISOZONE_RETURN_IF_ERROR(AsNotSupported(CheckDeviceFits(geometry)));
        return on_block_device ? ClearForImage(path, force) : Status::Ok();
      },
      force ? UnusableImage::kReplace : UnusableImage::kKeep));
  return OpenByUri(text, OpenMode::kReadWrite);
}

// A block device may carry what others have written, also where Isozone does not write. Under a zonefs that is a
// zonefs. Returns whether it has been erased.
Result<bool> ClearBlockDevice(ZonedDevice& device, const MkfsArguments& arguments) {
  const auto kernel = device.description().kernel;
  ISOZONE_ASSIGN_OR_RETURN(const Uri uri, ParseUri(arguments.device));
  if (!kernel && !IsBlockDevice(uri.path)) return false;
  const std::string path = kernel ? kernel->path : "";
  std::vector<Signature> signatures;
  if (!path.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(signatures, FindSignatures(path, device.name()));
  }
  const std::vector<std::string> content = ContentOf(device, signatures);
  ISOZONE_RETURN_IF_ERROR(CheckErase(device.name(), content, arguments.format.force));
  if (signatures.empty()) return false;
  ISOZONE_RETURN_IF_ERROR(EraseSignatures(path, device.name()));
  return true;
}

// An image takes room of its disk only as it is written. A warning where the disk has less than that may become.
std::optional<std::string> WarningOfRoom(const std::string& device, const DeviceGeometry& geometry) {
  const auto uri = ParseUri(device);
  struct stat file {};
  struct statvfs disk {};
  if (!uri.ok() || uri->scheme != "emu" || ::stat(uri->path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) {
    return std::nullopt;
  }
  if (::statvfs(uri->path.c_str(), &disk) != 0) return std::nullopt;
  constexpr uint64_t kStatBlock = 512;
  const uint64_t most = geometry.zone_count * geometry.zone_capacity;
  const uint64_t taken = static_cast<uint64_t>(file.st_blocks) * kStatBlock;
  const uint64_t left = disk.f_bavail * disk.f_frsize;
  if (taken + left >= most) return std::nullopt;
  return fmt::format("the image may come to take {}, and its disk has {} left; once that is full, writes fail",
                     FormatSize(most), FormatSize(left));
}

Status Mkfs(const MkfsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenOrCreate(arguments.device, arguments.format.force));
  ISOZONE_ASSIGN_OR_RETURN(const bool erased, ClearBlockDevice(*opened.device, arguments));
  if (erased) {
    opened.device.reset();  // it does not know which zones are empty now
    ISOZONE_ASSIGN_OR_RETURN(opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  }
  ISOZONE_RETURN_IF_ERROR(AsNotSupported(FormatDevice(*opened.device, arguments.format)));
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountOpened(std::move(opened)));

  const DeviceGeometry& geometry = file_system->state().device().geometry();
  const SpaceInfo space = file_system->state().Space();
  const std::optional<std::string> warning = WarningOfRoom(arguments.device, geometry);
  if (arguments.json) {
    console.PrintJson({{"device", file_system->state().device().name()},
                       {"label", file_system->state().label()},
                       {"uuid", file_system->state().uuid()},
                       {"zones", geometry.zone_count},
                       {"zone_capacity", geometry.zone_capacity},
                       {"capacity", space.capacity},
                       {"free", space.free},
                       {"metadata", MetadataJson(file_system->state().Metadata())},
                       {"warnings", warning ? Json::array({*warning}) : Json::array()}});
  } else {
    console.Print("{} is formatted: {} zones of {}, {} free{}\n", Printable(file_system->state().device().name()),
                  geometry.zone_count, FormatSize(geometry.zone_capacity), FormatSize(space.free),
                  file_system->state().label().empty() ? "" : ", label " + Printable(file_system->state().label()));
    console.Print("Use it with RocksDB as --fs_uri='isozone://{}'\n", Printable(arguments.device));
    if (warning) console.Print("{}: {}\n", console.Paint(Color::kRed, "warning"), *warning);
  }
  return file_system->Unmount();
}

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

}  // namespace

extern const Command kMkfsCommand = {
    "mkfs", "Format a device, making its image if there is none",
    "  isozone mkfs 'emu:/data/ssd.img?profile=small-zone&zones=1024' --label database", DefineMkfs};

}  // namespace isozone::cli
