#include "device/zonefs/mounted_zone_files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device/linux/block_device_node.h"

namespace isozone {
namespace {

constexpr int64_t kMagic = 0x5a4f4653;  // linux/magic.h
constexpr uint64_t kStatBlock = 512;    // bytes, of stat.st_blocks
constexpr mode_t kPermissions = 0777;

std::string NameOf(uint32_t file) { return std::to_string(file); }

std::string UserOf(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> memory{};
  const bool known = ::getpwuid_r(uid, &entry, memory.data(), memory.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : std::to_string(uid);
}

Status NotMounted(const std::string& path) {
  return Status::NotSupported(fmt::format(
      "{} is not where a zonefs is mounted; mount one there: mount -t zonefs -o errors=repair DEVICE {}", path, path));
}

// The folder with the sequential zones of the zonefs at `path`.
Result<FileDescriptor> OpenFolder(const std::string& path, OpenMode mode) {
  const FileDescriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0 && errno == ENOENT) {
    return Status::NotFound(fmt::format("there is no directory {}; name the one where zonefs is mounted", path));
  }
  if (root.get() < 0 && errno == ENOTDIR) return NotMounted(path);
  if (root.get() < 0) return Status::FromErrno(errno, fmt::format("cannot open {}", path));
  struct statfs status {};
  if (::fstatfs(root.get(), &status) != 0) return Status::FromErrno(errno, fmt::format("cannot look at {}", path));
  if (status.f_type != kMagic) return NotMounted(path);
  if (mode == OpenMode::kReadWrite && (status.f_flags & ST_RDONLY) != 0) {
    return Status::ReadOnly(fmt::format(
        "{} is mounted read-only; open it read-only, or: mount -o remount,rw,errors=repair {}", path, path));
  }
  FileDescriptor folder(::openat(root.get(), "seq", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) {
    return Status::NotSupported(
        fmt::format("{} has no folder seq: name the directory where zonefs is mounted, of a device that has sequential "
                    "zones",
                    path));
  }
  return folder;
}

}  // namespace

Result<std::unique_ptr<MountedZoneFiles>> MountedZoneFiles::Open(const std::string& path, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFolder(path, mode));
  std::unique_ptr<MountedZoneFiles> files(new MountedZoneFiles(path, std::move(folder)));
  struct stat status {};
  if (::fstat(files->folder_.get(), &status) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot look at {}/seq", path));
  }
  files->number_ = status.st_dev;
  files->count_ = static_cast<uint32_t>(status.st_size);  // of a folder of zonefs: how many files it has
  ISOZONE_RETURN_IF_ERROR(files->CheckRights(mode));
  if (mode == OpenMode::kReadWrite) ISOZONE_RETURN_IF_ERROR(files->Lock());
  return files;
}

Status MountedZoneFiles::CheckRights(OpenMode mode) const {
  const bool writes = mode == OpenMode::kReadWrite;
  for (uint32_t file = 0; file < count_; ++file) {
    struct stat status {};
    if (::fstatat(folder_.get(), NameOf(file).c_str(), &status, 0) != 0) {
      return Status::FromErrno(errno, fmt::format("cannot look at {}/seq/{}", path_, file));
    }
    if (status.st_size == 0 && (status.st_mode & kPermissions) == 0) continue;  // an offline zone
    const bool is_read_only = (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0;
    const int rights = writes && !is_read_only ? R_OK | W_OK : R_OK;
    if (::faccessat(folder_.get(), NameOf(file).c_str(), rights, AT_EACCESS) == 0) continue;
    return Status::PermissionDenied(fmt::format(
        "not allowed to {} {}/seq/{}, which is the file of user '{}' with mode {:04o}; be that user, or as root: chown "
        "USER {}/seq/*",
        writes ? "write" : "read", path_, file, UserOf(status.st_uid), status.st_mode & kPermissions, path_));
  }
  return {};
}

Status MountedZoneFiles::Lock() const {
  if (::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return Status::FromErrno(errno, fmt::format("cannot lock {}/seq", path_));
  std::vector<uint64_t> processes = ProcessesWith([this](const struct stat& file) { return file.st_dev == number_; });
  std::erase(processes, static_cast<uint64_t>(::getpid()));  // which looks at it here
  if (processes.empty()) {
    return Status::Busy(fmt::format("{} is in use by another process; stop it, or open the device read-only", path_));
  }
  return Status::Busy(fmt::format("{} is in use by process {}; stop it, or open the device read-only", path_,
                                  fmt::join(processes, ", ")));
}

int MountedZoneFiles::Look(uint32_t file, ZoneFileStatus& status) const {
  struct stat found {};
  if (::fstatat(folder_.get(), NameOf(file).c_str(), &found, 0) != 0) return errno;
  status.size = static_cast<uint64_t>(found.st_size);
  status.capacity = static_cast<uint64_t>(found.st_blocks) * kStatBlock;  // whatever is written
  status.mode = found.st_mode & kPermissions;
  return 0;
}

int MountedZoneFiles::Open(uint32_t file, bool writes, FileDescriptor& opened) {
  const int access = writes ? O_WRONLY : O_RDONLY;
  opened = FileDescriptor(::openat(folder_.get(), NameOf(file).c_str(), access | O_DIRECT | O_CLOEXEC));
  return opened.get() < 0 ? errno : 0;
}

int MountedZoneFiles::Truncate(uint32_t file, uint64_t size) {
  // By its name, because opening it could open the zone; and in this folder, whatever is mounted at `path_` by now.
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder_.get(), file);
  while (::truncate(path.c_str(), static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool MountedZoneFiles::IsGone() const { return ::access(SysfsFolder(number_).c_str(), F_OK) != 0; }

uint64_t MountedZoneFiles::Attribute(std::string_view name) const {
  std::error_code error;
  const auto device = std::filesystem::read_symlink(SysfsFolder(number_), error).filename().string();
  const std::string text = ReadText(fmt::format("/sys/fs/zonefs/{}/{}", device, name)).value_or("");
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string MountedZoneFiles::MountOptions() const {
  return MountOptionsOf(ReadText("/proc/self/mountinfo").value_or(""), ::major(number_), ::minor(number_));
}

std::string MountedZoneFiles::Text() const {
  const auto of = [this](std::string_view used, std::string_view limit) {
    const uint64_t most = Attribute(limit);
    return fmt::format("{}{}", Attribute(used), most == 0 ? "" : fmt::format(" of {}", most));
  };
  return fmt::format("zonefs ({}; {} files open for writing, {} active)", MountOptions(),
                     of("nr_wro_seq_files", "max_wro_seq_files"), of("nr_active_seq_files", "max_active_seq_files"));
}

std::string MountOptionsOf(std::string_view mountinfo, uint32_t major, uint32_t minor) {
  // "36 35 259:1 / /mnt/z rw,relatime shared:1 - zonefs /dev/nvme0n2 rw,errors=repair": number third, options last.
  const std::string number = fmt::format("{}:{}", major, minor);
  std::istringstream mounts{std::string(mountinfo)};
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string of;
    words >> id >> parent >> of;
    if (of == number && line.find(" - ") != std::string::npos) return line.substr(line.rfind(' ') + 1);
  }
  return "";
}

}  // namespace isozone
