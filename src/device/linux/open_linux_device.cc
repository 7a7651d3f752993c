#include "device/linux/open_linux_device.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
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
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "device/linux/opened_block_device.h"
#include "device/linux/refusals.h"

namespace isozone {
namespace {

namespace stdfs = std::filesystem;

// For how long the requests of a process that was killed, or one that looks at every device, such as udevd, may have the
// device open.
constexpr std::chrono::milliseconds kPatience(1000);
constexpr std::chrono::milliseconds kPause(20);

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A block device, by its number.
struct BlockDevice {
  std::string path;
  dev_t number = 0;
  std::string group;  // whose members may read and write it

  std::string sysfs() const { return fmt::format("/sys/dev/block/{}:{}", ::major(number), ::minor(number)); }
};

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

Result<BlockDevice> FindDevice(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NoSuchDevice(path);
    return Status::FromErrno(errno, fmt::format("cannot look at {}", path));
  }
  if (!S_ISBLK(status.st_mode)) return NotABlockDevice(path);
  return BlockDevice{path, status.st_rdev, GroupOf(status)};
}

Result<QueueFacts> FactsOf(const BlockDevice& device) {
  const std::string sysfs = device.sysfs();
  auto facts = ParseQueueFacts([&](std::string_view name) { return ReadText(fmt::format("{}/{}", sysfs, name)); });
  if (!facts.ok()) return facts.status().WithContext(device.path);
  if (!facts->zoned()) return NoZones(device.path);
  return facts;
}

// The device that was opened. Between two uses of a path it may come to name another one.
Result<BlockDevice> OpenedDevice(const BlockDevice& named, const FileDescriptor& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Status::FromErrno(errno, fmt::format("cannot look at {}", named.path));
  if (!S_ISBLK(status.st_mode)) return NotABlockDevice(named.path);
  return BlockDevice{named.path, status.st_rdev, GroupOf(status)};
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

// The processes that have the device open, of those that this process may look at.
std::vector<uint64_t> ProcessesWith(const BlockDevice& device) {
  std::vector<uint64_t> processes;
  for (const std::string& name : NamesIn("/proc")) {
    uint64_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const std::string folder = fmt::format("/proc/{}/fd", name);
    for (const std::string& fd : NamesIn(folder)) {
      struct stat status {};
      if (::stat(fmt::format("{}/{}", folder, fd).c_str(), &status) != 0) continue;
      if (!S_ISBLK(status.st_mode) || status.st_rdev != device.number) continue;
      processes.push_back(pid);
      break;
    }
  }
  return processes;
}

DeviceUse UseOf(const BlockDevice& device) {
  DeviceUse use;
  use.path = device.path;
  use.mounted_at = MountedAt(ReadText("/proc/self/mountinfo").value_or(""), ReadText("/proc/swaps").value_or(""),
                             device.path, ::major(device.number), ::minor(device.number));
  use.holders = NamesIn(device.sysfs() + "/holders");
  use.processes = ProcessesWith(device);
  use.group = device.group;
  return use;
}

Result<FileDescriptor> OpenNode(const BlockDevice& device, OpenMode mode) {
  const int access = mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR | O_EXCL;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    FileDescriptor fd(::open(device.path.c_str(), access | O_DIRECT | O_CLOEXEC));
    if (fd.get() >= 0) return fd;
    const int error = errno;
    const DeviceUse use = UseOf(device);
    const bool may_end = error == EBUSY && use.mounted_at.empty() && use.holders.empty();
    if (!may_end || std::chrono::steady_clock::now() >= give_up) return OpenRefused(use, mode, error);
    std::this_thread::sleep_for(kPause);
  }
}

Result<TransferPath> TakeTransferPath(UriOptions& options) {
  const std::optional<std::string> given = options.Take("io");
  if (!given) return TransferPath::kBest;
  if (*given == "ring") return TransferPath::kRing;
  if (*given == "threads") return TransferPath::kThreads;
  return Status::InvalidArgument(fmt::format("option io={}: write ring or threads", *given));
}

}  // namespace

Result<std::unique_ptr<LinuxDevice>> OpenLinuxDevice(Uri& uri, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(const TransferPath path, TakeTransferPath(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(const BlockDevice named, FindDevice(uri.path));
  ISOZONE_RETURN_IF_ERROR(FactsOf(named).status());  // what has no zones is not even opened
  ISOZONE_ASSIGN_OR_RETURN(FileDescriptor fd, OpenNode(named, mode));
  ISOZONE_ASSIGN_OR_RETURN(const BlockDevice device, OpenedDevice(named, fd));
  ISOZONE_ASSIGN_OR_RETURN(const QueueFacts facts, FactsOf(device));
  auto kernel = OpenedBlockDevice::Create(std::move(fd), path);
  if (!kernel.ok()) return kernel.status().WithContext(device.path);
  return LinuxDevice::Create("dev:" + device.path, mode, std::move(*kernel), facts);
}

Status CheckLinuxDevice(Uri& uri) {
  ISOZONE_RETURN_IF_ERROR(TakeTransferPath(uri.options).status());
  ISOZONE_ASSIGN_OR_RETURN(const BlockDevice device, FindDevice(uri.path));
  return FactsOf(device).status();
}

}  // namespace isozone
