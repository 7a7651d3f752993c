#include "device/linux/block_device_node.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "device/linux/block_kernel.h"
#include "device/linux/refusals.h"

namespace isozone {
namespace {

namespace stdfs = std::filesystem;

// For how long the requests of a process that was killed, or one that looks at every device, such as udevd, may have
// the device open.
constexpr std::chrono::milliseconds kPatience(1000);
constexpr std::chrono::milliseconds kPause(20);

std::string GroupOf(const struct stat& status) {
  if ((status.st_mode & (S_IRGRP | S_IWGRP)) != (S_IRGRP | S_IWGRP)) return "";
  group entry{};
  group* found = nullptr;
  std::array<char, 4096> memory{};
  if (::getgrgid_r(status.st_gid, &entry, memory.data(), memory.size(), &found) == 0 && found != nullptr) {
    return found->gr_name;
  }
  return std::to_string(status.st_gid);
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (stdfs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

DeviceUse UseOf(const BlockDeviceNode& device) {
  DeviceUse use;
  use.path = device.path;
  use.mounted_at = MountedAt(ReadText("/proc/self/mountinfo").value_or(""), ReadText("/proc/swaps").value_or(""),
                             device.path, ::major(device.number), ::minor(device.number));
  use.holders = NamesIn(SysfsFolder(device.number) + "/holders");
  use.processes =
      ProcessesWith([&](const struct stat& file) { return S_ISBLK(file.st_mode) && file.st_rdev == device.number; });
  use.group = device.group;
  return use;
}

}  // namespace

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string SysfsFolder(dev_t number) { return fmt::format("/sys/dev/block/{}:{}", ::major(number), ::minor(number)); }

SysfsReader SysfsOf(dev_t number) {
  return [folder = SysfsFolder(number)](std::string_view attribute) {
    return ReadText(fmt::format("{}/{}", folder, attribute));
  };
}

std::optional<std::string> QueueAttribute(dev_t number, std::string_view name) {
  const std::string folder = SysfsFolder(number);
  const bool is_partition = stdfs::exists(folder + "/partition");
  return ReadText(fmt::format("{}/{}queue/{}", folder, is_partition ? "../" : "", name));
}

std::vector<uint64_t> ProcessesWith(const std::function<bool(const struct stat&)>& is_meant) {
  std::vector<uint64_t> processes;
  for (const std::string& name : NamesIn("/proc")) {
    uint64_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const std::string folder = fmt::format("/proc/{}/fd", name);
    for (const std::string& fd : NamesIn(folder)) {
      struct stat status {};
      if (::stat(fmt::format("{}/{}", folder, fd).c_str(), &status) != 0) continue;
      if (!is_meant(status)) continue;
      processes.push_back(pid);
      break;
    }
  }
  return processes;
}

Result<BlockDeviceNode> FindBlockDevice(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NoSuchDevice(path);
    return Status::FromErrno(errno, fmt::format("cannot look at {}", path));
  }
  if (!S_ISBLK(status.st_mode)) return NotABlockDevice(path);
  return BlockDeviceNode{path, status.st_rdev, GroupOf(status)};
}

Result<BlockDeviceNode> NodeOf(const BlockDeviceNode& named, const FileDescriptor& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Status::FromErrno(errno, fmt::format("cannot look at {}", named.path));
  if (!S_ISBLK(status.st_mode)) return NotABlockDevice(named.path);
  return BlockDeviceNode{named.path, status.st_rdev, GroupOf(status)};
}

Result<uint64_t> SizeOfBlockDevice(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const BlockDeviceNode device, FindBlockDevice(path));
  const std::string text = SysfsOf(device.number)("size").value_or("");
  uint64_t sectors = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), sectors).ec != std::errc()) {
    return Status::NotSupported(fmt::format("the kernel does not tell the size of {}", path));
  }
  return sectors * kKernelSector;
}

bool IsBlockDevice(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
}

Result<FileDescriptor> OpenBlockDevice(const BlockDeviceNode& device, OpenMode mode, int flags) {
  const int access = mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR | O_EXCL;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    FileDescriptor fd(::open(device.path.c_str(), access | flags | O_CLOEXEC));
    if (fd.get() >= 0) return fd;
    const int error = errno;
    const DeviceUse use = UseOf(device);
    const bool may_end = error == EBUSY && use.mounted_at.empty() && use.holders.empty();
    if (!may_end || std::chrono::steady_clock::now() >= give_up) return OpenRefused(use, mode, error);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace isozone
