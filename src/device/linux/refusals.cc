#include "device/linux/refusals.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

namespace isozone {
namespace {

Status Busy(const DeviceUse& use) {
  if (use.mounted_at == "swap") {
    return Status::Busy(fmt::format("{} is used for swapping; name another device", use.path));
  }
  if (!use.mounted_at.empty()) {
    return Status::Busy(
        fmt::format("{} is mounted at {}; unmount it, or name another device", use.path, use.mounted_at));
  }
  if (!use.holders.empty()) {
    return Status::Busy(fmt::format("{} is part of {}; remove that first, or name another device", use.path,
                                    fmt::join(use.holders, ", ")));
  }
  if (!use.processes.empty()) {
    return Status::Busy(fmt::format("{} is in use by process {}; stop it, or open the device read-only", use.path,
                                    fmt::join(use.processes, ", ")));
  }
  return Status::Busy(fmt::format("{} is in use by another process; stop it, or open the device read-only", use.path));
}

Status Forbidden(const DeviceUse& use, OpenMode mode) {
  const std::string what =
      fmt::format("not allowed to open {} for {}", use.path, mode == OpenMode::kReadOnly ? "reading" : "writing");
  if (use.group.empty() || use.group == "root") {
    return Status::PermissionDenied(what + "; give it a group by a udev rule (docs/devices.md), or be root");
  }
  return Status::PermissionDenied(
      fmt::format("{}; join its group '{}', or give it another one by a udev rule (docs/devices.md)", what, use.group));
}

// A path as mountinfo and swaps write it.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && text.substr(i + 1, 3) == "040") {
      plain += ' ';
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

Status NoSuchDevice(std::string_view path) {
  return Status::NotFound(fmt::format("there is no device {}; list those with zones: lsblk --zoned", path));
}

Status CommandsForbidden(int error) {
  return Status::PermissionDenied(fmt::format(
      "not allowed to send NVMe commands: {}; Linux before 6.2 lets only root do that, later ones whoever may "
      "write the device; or name the block device",
      std::strerror(error)));
}

Status IdentifyFailed(int answer) {
  constexpr std::string_view kWhat = "the namespace does not identify itself";
  if (answer == -EACCES || answer == -EPERM) return CommandsForbidden(-answer);
  if (answer < 0) return Status::FromErrno(-answer, kWhat);
  return Status::IoError(fmt::format("{}: NVMe status {:X}h", kWhat, answer));
}

Status NotABlockDevice(std::string_view path) {
  constexpr std::string_view kPassthrough = "/dev/ng";  // ng0n1 beside nvme0n1
  if (path.starts_with(kPassthrough) &&
      path.find_first_not_of("0123456789n", kPassthrough.size()) == std::string_view::npos) {
    return Status::NotSupported(
        fmt::format("{} only takes NVMe commands; name the block device of the namespace, /dev/nvme{}", path,
                    path.substr(kPassthrough.size())));
  }
  return Status::NotSupported(
      fmt::format("{} is no block device; for an emulated SSD in a file, write emu:{}", path, path));
}

Status NoZones(std::string_view path) {
  return Status::NotSupported(fmt::format(
      "{} has no zones, which Isozone needs; put an emulated SSD on it, emu:{}, or in a file, emu:/path/ssd.img", path,
      path));
}

Status HasZones(std::string_view path) {
  return Status::NotSupported(
      fmt::format("{} has zones of its own, and needs no emulated SSD; write dev:{}", path, path));
}

Status OpenRefused(const DeviceUse& use, OpenMode mode, int error) {
  switch (error) {
    case EBUSY:
      return Busy(use);
    case EACCES:
    case EPERM:
      return Forbidden(use, mode);
    case ENOENT:
      return NoSuchDevice(use.path);
    case ENXIO:
    case ENODEV:
      return Status::NotFound(fmt::format("{} has no device behind it; it may have been removed", use.path));
    case EROFS:
      return Status::ReadOnly(
          fmt::format("{} is write-protected; open it read-only, or allow writes: blockdev --setrw", use.path));
    default:
      return Status::FromErrno(error, fmt::format("cannot open {}", use.path));
  }
}

std::string MountedAt(std::string_view mountinfo, std::string_view swaps, std::string_view path, uint32_t major,
                      uint32_t minor) {
  // "36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/sdb rw": number third, mount point fifth, source two behind
  // the dash. Some file systems have a number of their own, and only the source names the device.
  const std::string number = fmt::format("{}:{}", major, minor);
  std::istringstream mounts{std::string(mountinfo)};
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> words = Words(line);
    if (words.size() < 5) continue;
    size_t dash = 5;
    while (dash < words.size() && words[dash] != "-") ++dash;
    const bool by_source = dash + 2 < words.size() && Unescaped(words[dash + 2]) == path;
    if (words[2] == number || by_source) return Unescaped(words[4]);
  }
  std::istringstream swapping{std::string(swaps)};
  for (std::string line; std::getline(swapping, line);) {
    const std::vector<std::string> words = Words(line);
    if (!words.empty() && Unescaped(words[0]) == path) return "swap";
  }
  return "";
}

}  // namespace isozone
