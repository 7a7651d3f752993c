#include "fuse/mount_directory.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/uri.h"

extern char** environ;

namespace isozone {
namespace {

// mountinfo writes spaces, tabs, newlines and backslashes as \ and three octal digits.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3';
    if (!escape) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  }
  return words;
}

std::string ReadMountInfo() {
  std::ifstream file("/proc/self/mountinfo");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// SCHEME:PATH of a URI, without options and symbolic links.
std::string DeviceOf(std::string_view uri) {
  const auto parsed = ParseUri(uri);
  if (!parsed.ok() || parsed->path.empty()) return std::string(uri);
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::weakly_canonical(std::filesystem::absolute(parsed->path, error), error);
  return fmt::format("{}:{}", parsed->scheme, error ? parsed->path : path.string());
}

Status DetachByHelper(const std::string& directory) {
  std::string program = "fusermount3";
  std::string flags = "-uzq";
  std::string path = directory;
  const std::array<char*, 4> arguments = {program.data(), flags.data(), path.data(), nullptr};
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ)) {
    return Status::FromErrno(error, "cannot run fusermount3 (package fuse3)");
  }
  int result = 0;
  while (::waitpid(child, &result, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return Status::Ok();
  return Status::PermissionDenied(fmt::format(
      "cannot unmount {}: only root and the user who mounted it may; run fusermount3 -uz {}", directory, directory));
}

// Where symbolic links lead, one after another; the kernel gives up after as many.
std::filesystem::path FollowLinks(const std::string& directory) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(directory, error);
  for (int i = 0; i < kMostLinks; ++i) {
    if (!path.has_filename()) path = path.parent_path();
    if (!std::filesystem::is_symlink(path, error)) break;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (!error) path = std::filesystem::weakly_canonical(path.parent_path(), error) / target;
  }
  return path;
}

// One line of mountinfo; false: it is cut off.
bool ParseMount(std::string_view line, MountEntry& entry) {
  const std::vector<std::string_view> words = Words(line);
  // 36 35 98:0 /root /directory options [tags...] - type source options
  size_t dash = 6;
  while (dash < words.size() && words[dash] != "-") ++dash;
  if (dash + 2 >= words.size()) return false;
  entry = {Unescape(words[4]), Unescape(words[dash + 1]), Unescape(words[dash + 2]), std::string(words[2])};
  return true;
}

std::vector<MountEntry> ParseMounts(std::string_view text) {
  std::vector<MountEntry> entries;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    MountEntry entry;
    if (ParseMount(text.substr(0, end), entry)) entries.push_back(std::move(entry));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return entries;
}

// The path of a directory that may be a dead mount, which nothing can be asked of.
Result<std::string> AbsolutePathOf(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, error).lexically_normal();
  if (error) return Status::InvalidArgument(fmt::format("cannot use {}: {}", directory.string(), error.message()));
  std::filesystem::path parent = absolute.has_filename() ? absolute : absolute.parent_path();
  const std::filesystem::path name = parent.filename();
  parent = std::filesystem::weakly_canonical(parent.parent_path(), error);
  if (error) return Status::NotFound(fmt::format("cannot find {}: {}", directory.string(), error.message()));
  return (parent / name).string();
}

// The kernel may still know the attributes of a dead mount, but not its space. Where the daemon has only just ended,
// the question may be one of those that the kernel still ends.
bool IsDeadMount(const std::string& directory) {
  constexpr int kMostTries = 10;
  struct statfs space {};
  int error = EINTR;
  for (int tries = 0; error == EINTR && tries < kMostTries; ++tries) {
    error = ::statfs(directory.c_str(), &space) == 0 ? 0 : errno;
  }
  return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED;
}

Status TakeOffDeadMount(const std::string& directory) {
  const auto mounted = FindMount(directory);
  if (mounted.ok() && mounted->type != kFuseType) {
    return Status::Busy(fmt::format("{} is a dead mount of {}; take it off first: fusermount3 -uz {}", directory,
                                    mounted->type, directory));
  }
  ISOZONE_RETURN_IF_ERROR(DetachMount(directory));
  Log().warn("{} was a dead mount, whose daemon had ended; it is taken off", directory);
  return Status::Ok();
}

Status MountedAlready(const MountEntry& mounted, std::string_view by) {
  return Status::Busy(fmt::format("{} is mounted on {} already{}; unmount it first: umount {}", mounted.source,
                                  mounted.directory, by, mounted.directory));
}

// That stat(2) fails with `error`.
Status UnusableDirectory(const std::string& path, int error) {
  if (error == ENOENT) {
    return Status::NotFound(fmt::format("{} is not there; make the directory first: mkdir -p {}", path, path));
  }
  // Without allow_other, the kernel shows a mount to its user alone, and hides from others that it is dead.
  const auto mounted = FindMount(path);
  if (error == EACCES && mounted.ok()) return MountedAlready(*mounted, ", by another user");
  return Status::FromErrno(error, fmt::format("cannot mount on {}", path));
}

}  // namespace

dev_t DeviceNumber(const MountEntry& entry) {
  std::istringstream number(entry.number);
  unsigned major = 0;
  unsigned minor = 0;
  char colon = 0;
  return number >> major >> colon >> minor && colon == ':' ? makedev(major, minor) : 0;
}

Result<MountEntry> FindMount(std::string_view text, std::string_view directory) {
  Result<MountEntry> found = Status::NotFound(fmt::format("nothing is mounted on {}", directory));
  for (MountEntry& entry : ParseMounts(text)) {
    if (entry.directory == directory && entry.type != "autofs") found = std::move(entry);
  }
  return found;
}

Result<MountEntry> FindMount(std::string_view directory) { return FindMount(ReadMountInfo(), directory); }

bool IsSameDevice(std::string_view first, std::string_view second) { return DeviceOf(first) == DeviceOf(second); }

bool IsShown(std::string_view source) {
  const std::vector<MountEntry> entries = ParseMounts(ReadMountInfo());
  return std::any_of(entries.begin(), entries.end(), [source](const MountEntry& entry) {
    return entry.type == kFuseType && IsSameDevice(entry.source, source);
  });
}

Status DetachMount(const std::string& directory) {
  if (::umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return Status::Ok();
  if (errno == EPERM) return DetachByHelper(directory);
  return Status::FromErrno(errno, fmt::format("cannot unmount {}", directory));
}

Result<std::string> PrepareDirectory(const std::string& directory) {
  if (directory.empty()) return Status::InvalidArgument("DIRECTORY is empty");
  ISOZONE_ASSIGN_OR_RETURN(const std::string path, AbsolutePathOf(FollowLinks(directory)));
  if (IsDeadMount(path)) ISOZONE_RETURN_IF_ERROR(TakeOffDeadMount(path));
  struct stat attributes {};
  if (::stat(path.c_str(), &attributes) != 0) return UnusableDirectory(path, errno);
  if (!S_ISDIR(attributes.st_mode)) {
    return Status::NotDirectory(fmt::format("{} is not a directory; give one that is empty", path));
  }
  std::error_code error;
  std::string real = std::filesystem::canonical(path, error).string();
  if (error) return Status::IoError(fmt::format("cannot resolve {}: {}", path, error.message()));
  if (const auto mounted = FindMount(real); mounted.ok()) return MountedAlready(*mounted, "");
  const bool is_empty = std::filesystem::is_empty(real, error);
  if (error) return Status::FromErrno(error.value(), fmt::format("cannot read {}", real));
  if (!is_empty) {
    return Status::NotEmpty(fmt::format("{} is not empty, and a mount would hide its files; give an empty one", real));
  }
  return real;
}

}  // namespace isozone
