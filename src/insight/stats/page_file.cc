#include "insight/stats/page_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "device/linux/block_device_node.h"
#include "device/linux/nvme_namespace.h"

namespace isozone {
namespace {

constexpr mode_t kReadBits = S_IRUSR | S_IRGRP | S_IROTH;
// How often, and how far apart, a mount looks whether a reader has let go of the page of a process that died.
constexpr int kReplaceTries = 50;
constexpr std::chrono::milliseconds kReplacePause(2);

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct ProcessState {
  char state = '?';
  uint64_t started = 0;  // clock ticks after the boot
};

// Of /proc/PID/stat. The name of the program, in parentheses, may contain anything.
std::optional<ProcessState> StateOf(const std::string& pid) {
  const std::string text = Content("/proc/" + pid + "/stat");
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  ProcessState process;
  fields >> process.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> process.started;
  if (!fields) return std::nullopt;
  return process;
}

uint64_t PidNamespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// The rights of `owner`, as far as this process may give them. Who may not read the device gets none. The page stays
// with the user of this process, who has it open for writing and needs no right to that.
Status SetRights(int fd, const PageOwner& owner) {
  mode_t mode = (owner.mode & kReadBits) | S_IRUSR;
  const bool has_group = ::fchown(fd, static_cast<uid_t>(-1), owner.gid) == 0;
  if (!has_group && (owner.mode & S_IROTH) == 0) mode &= ~mode_t{S_IRGRP};
  if (::fchmod(fd, mode) != 0) return Status::FromErrno(errno, "cannot set the rights of a statistics page");
  return Status::Ok();
}

bool IsSame(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// The process that made the file `fd`, as the file says; nothing if it is too short.
std::optional<PageProcess> PublisherOf(int fd) {
  SharedFileHeader header{};
  if (::pread(fd, &header, sizeof(header), 0) != sizeof(header)) return std::nullopt;
  return PageProcess{header.pid, header.process_started, header.pid_namespace, {}};
}

// Whether another user has made what is named `path`.
bool IsOfAnother(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
}

// Removes what a process that died has left under `path`. kBusy if it lives.
Status RemoveOld(const std::string& path) {
  for (int tries = 0;; ++tries) {
    const FileDescriptor old(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (old.get() < 0 && errno == ENOENT) return Status::Ok();
    if (old.get() < 0) return Status::FromErrno(errno, fmt::format("cannot open {}", path));
    const bool locked = ::flock(old.get(), LOCK_EX | LOCK_NB) == 0;
    const auto publisher = PublisherOf(old.get());
    // A reader that removes the same page holds the lock for a moment. A child of the dead process may hold it for
    // long.
    if (locked || (tries == kReplaceTries && publisher && !publisher->MayLive())) {
      struct stat opened {};
      struct stat named {};
      // A reader may have removed it, and nobody else makes a new one: the device has one writer.
      if (::fstat(old.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && IsSame(opened, named) &&
          ::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return Status::FromErrno(errno, fmt::format("cannot replace {}", path));
      }
      return Status::Ok();
    }
    if (tries == kReplaceTries) {
      return Status::Busy(fmt::format("{} belongs to process {}", path, publisher ? publisher->pid : 0));
    }
    std::this_thread::sleep_for(kReplacePause);
  }
}

}  // namespace

Result<PageOwner> PageOwner::Of(const std::string& device) {
  const size_t colon = device.find(':');
  std::string path = colon == std::string::npos || device.starts_with('/') ? device : device.substr(colon + 1);
  if (TakesNvmeCommands(path)) {
    ISOZONE_ASSIGN_OR_RETURN(BlockDeviceNode block, BlockDeviceBeside(path));
    path = std::move(block.path);
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Status::FromErrno(errno, path);
  PageOwner owner{{}, status.st_mode & 07777, status.st_uid, status.st_gid, status.st_nlink > 0};
  if (S_ISBLK(status.st_mode)) {
    owner.page_name = fmt::format("isozone-b{}-{}", major(status.st_rdev), minor(status.st_rdev));
  } else {
    owner.page_name = fmt::format("isozone-{:x}-{:x}", status.st_dev, status.st_ino);
  }
  return owner;
}

Result<std::vector<std::string>> NamesWith(const std::string& directory, const std::string& prefix) {
  static constexpr std::array kNoSuchDirectory = {ENOENT, ENOTDIR, EACCES, ENXIO, ELOOP};
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  const bool unreadable = error && std::ranges::count(kNoSuchDirectory, error.value()) == 0;
  if (unreadable) return Status::FromErrno(error.value(), fmt::format("cannot read {}", directory));
  return names;
}

Result<std::vector<std::string>> PagePaths(const std::string& directory, const std::string& page_name) {
  std::vector<std::string> paths = {fmt::format("{}/{}", directory, page_name)};
  ISOZONE_ASSIGN_OR_RETURN(const auto names, NamesWith(directory, page_name + "."));
  for (const std::string& name : names) paths.push_back(fmt::format("{}/{}", directory, name));
  return paths;
}

bool MayHaveMounted(const struct stat& file, const PageOwner& owner) {
  if (file.st_uid == 0 || file.st_uid == owner.uid || file.st_uid == ::geteuid()) return true;
  const bool of_group = file.st_gid == owner.gid && (owner.mode & S_IWGRP) != 0;
  return of_group || (owner.mode & S_IWOTH) != 0;
}

Result<std::vector<std::byte>> ReadSharedFile(int fd, size_t offset, size_t bytes) {
  std::vector<std::byte> copy(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, &copy[done], bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "cannot read shared memory");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  copy.resize(done);
  return copy;
}

PageProcess PageProcess::Self() {
  PageProcess self;
  self.pid = static_cast<uint32_t>(::getpid());
  if (const auto state = StateOf("self")) self.started = state->started;
  self.pid_namespace = PidNamespace();
  self.program = Content("/proc/self/comm");
  while (!self.program.empty() && self.program.back() == '\n') self.program.pop_back();
  return self;
}

bool PageProcess::MayLive() const {
  if (pid_namespace != PidNamespace()) return true;
  if (pid == 0 || pid > INT32_MAX || (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) return false;
  const auto state = StateOf(std::to_string(pid));
  if (!state || started == 0) return true;  // its entry in /proc may be hidden from this user
  return state->started == started && state->state != 'Z' && state->state != 'X';
}

Result<std::unique_ptr<PageFile>> PageFile::Make(const PageOwner& owner, size_t bytes, const std::string& directory) {
  const std::string path = directory + "/" + owner.page_name;
  const auto failed = [&](int error) { return Status::FromErrno(error, fmt::format("cannot make {}", path)); };
  FileDescriptor fd(::open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (fd.get() < 0) return failed(errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return failed(errno);
  ISOZONE_RETURN_IF_ERROR(SetRights(fd.get(), owner));
  return Map(path, std::move(fd), bytes);
}

Result<std::unique_ptr<PageFile>> PageFile::MakePrivate(size_t bytes) {
  FileDescriptor fd(::memfd_create("isozone-statistics", MFD_CLOEXEC));
  if (fd.get() < 0) return Status::FromErrno(errno, "cannot make memory for statistics");
  return Map("", std::move(fd), bytes);
}

Result<std::unique_ptr<PageFile>> PageFile::Map(std::string path, FileDescriptor fd, size_t bytes) {
  const auto failed = [&](int error) {
    return Status::FromErrno(error, fmt::format("cannot make {}", path.empty() ? "memory for statistics" : path));
  };
  // Not sparse: a lack of memory is an error here, and not a signal later.
  if (const int error = AllocateStart(fd.get(), bytes); error != 0) return failed(error);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return failed(errno);
  return std::unique_ptr<PageFile>(
      new PageFile(std::move(path), std::move(fd), {static_cast<uint64_t*>(memory), bytes / sizeof(uint64_t)}));
}

PageFile::PageFile(std::string path, FileDescriptor fd, std::span<uint64_t> words)
    : path_(std::move(path)), fd_(std::move(fd)), words_(words) {}

PageFile::~PageFile() {
  if (!leaves_name_) Remove();
  ::munmap(words_.data(), words_.size_bytes());
}

void PageFile::Remove() {
  struct stat own {};
  struct stat named {};
  const bool is_named = ::fstat(fd_.get(), &own) == 0 && own.st_nlink > 0;
  if (is_named && ::lstat(path_.c_str(), &named) == 0 && IsSame(own, named)) ::unlink(path_.c_str());
}

Status PageFile::Publish() {
  if (path_.empty()) return Status::Ok();
  Status removed = RemoveOld(path_);
  if (!removed.ok() && IsOfAnother(path_)) {
    path_ += fmt::format(".{}", ::geteuid());
    removed = RemoveOld(path_);
  }
  ISOZONE_RETURN_IF_ERROR(removed);
  const std::string unnamed = fmt::format("/proc/self/fd/{}", fd_.get());
  if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot name {}", path_));
  }
  return Status::Ok();
}

}  // namespace isozone
