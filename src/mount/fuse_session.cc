#include "mount/fuse_session.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "mount/mount_directory.h"

namespace isozone {
namespace {

constexpr const char* kFuseDevice = "/dev/fuse";
constexpr int kWakeSignal = SIGUSR2;

// The session and the channel of this thread. libfuse passes on neither.
thread_local FuseSession* this_session = nullptr;
thread_local int this_channel = -1;

// Ends a blocking read of another thread.
void PrepareWakeSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(kWakeSignal, &action, nullptr);
}

Status CheckFuseDevice() {
  const FileDescriptor device(::open(kFuseDevice, O_RDWR | O_CLOEXEC));
  if (device.get() >= 0) return Status::Ok();
  if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
    return Status::NotSupported(
        "there is no /dev/fuse here: load the module (modprobe fuse), or give the container "
        "the device");
  }
  return Status::FromErrno(errno, "cannot open /dev/fuse, which its group or root may");
}

// In lists of options, libfuse takes commas and backslashes for its own.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string OptionList(const std::string& source, const FuseOptions& options) {
  std::string list = fmt::format("default_permissions,max_read={},subtype={},fsname={}", kLongestRequest, kFuseSubtype,
                                 Escape(source));
  if (options.allow_other) list += ",allow_other";
  if (options.read_only) list += ",ro";
  for (const std::string& word : options.kernel) list += "," + word;
  return list;
}

// libfuse says on standard error why it cannot mount; this is one line that says what to do.
Status MountFailure(const std::string& directory, const FuseOptions& options) {
  if (::geteuid() == 0) return Status::PermissionDenied(fmt::format("the kernel refuses to mount on {}", directory));
  std::string advice = "is fusermount3 there (package fuse3), and is the directory yours?";
  if (options.allow_other) advice += " -o allow_other needs user_allow_other in /etc/fuse.conf";
  return Status::PermissionDenied(fmt::format("cannot mount on {}: {}", directory, advice));
}

}  // namespace

FuseSession::FuseSession(std::string directory, const FuseOptions& options)
    : directory_(std::move(directory)), thread_count_(options.threads), spin_ns_(int64_t{options.spin_us} * 1000) {}

Result<std::unique_ptr<FuseSession>> FuseSession::Mount(const fuse_lowlevel_ops& operations, void* user_data,
                                                        const std::string& directory, const std::string& source,
                                                        const FuseOptions& options) {
  ISOZONE_RETURN_IF_ERROR(CheckFuseDevice());
  std::unique_ptr<FuseSession> made(new FuseSession(directory, options));
  std::array<std::string, 3> words = {"isozone", "-o", OptionList(source, options)};
  std::array<char*, 4> pointers = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  fuse_args arguments{3, pointers.data(), 0};
  made->session_ = ::fuse_session_new(&arguments, &operations, sizeof(operations), user_data);
  ::fuse_opt_free_args(&arguments);
  if (made->session_ == nullptr) return Status::InvalidArgument("libfuse does not take these options; see above");
  if (::fuse_session_mount(made->session_, directory.c_str()) != 0) return MountFailure(directory, options);
  if (const auto mounted = FindMount(directory); mounted.ok()) made->number_ = mounted->number;
  static const fuse_custom_io kIo = {
      [](int, iovec* parts, int count, void*) { return this_session->WriteAnswer(this_channel, parts, count); },
      [](int, void* buffer, size_t size, void*) { return this_session->ReadRequest(this_channel, buffer, size); },
      nullptr, nullptr};
  if (::fuse_session_custom_io(made->session_, &kIo, ::fuse_session_fd(made->session_)) != 0) {
    return Status::NotSupported("this libfuse cannot be given its own input and output");
  }
  return made;
}

FuseSession::~FuseSession() {
  if (session_ == nullptr) return;
  EndThreads();
  channels_.clear();
  // libfuse takes off whatever is on the directory.
  if (WhatIsShown() != Shown::kAnother) ::fuse_session_unmount(session_);
  ::fuse_session_destroy(session_);
}

Status FuseSession::Start(std::function<void()> ended) {
  PrepareWakeSignal();
  for (uint32_t i = 0; i < thread_count_; ++i) {
    ISOZONE_ASSIGN_OR_RETURN(FileDescriptor channel, CloneChannel());
    channels_.push_back(std::move(channel));
  }
  ended_ = std::move(ended);
  running_ = thread_count_;
  for (const FileDescriptor& channel : channels_) threads_.emplace_back([this, fd = channel.get()] { Serve(fd); });
  return Status::Ok();
}

Result<FileDescriptor> FuseSession::CloneChannel() const {
  FileDescriptor channel(::open(kFuseDevice, O_RDWR | O_CLOEXEC));
  if (channel.get() < 0) return Status::FromErrno(errno, "cannot open /dev/fuse");
  auto master = static_cast<uint32_t>(::fuse_session_fd(session_));
  if (::ioctl(channel.get(), FUSE_DEV_IOC_CLONE, &master) != 0) {
    return Status::FromErrno(errno, "cannot clone a channel of /dev/fuse");
  }
  return channel;
}

void FuseSession::Serve(int channel) {
  ::pthread_setname_np(::pthread_self(), "isozone-fuse");
  this_session = this;
  this_channel = channel;
  fuse_buf buffer{};
  while (!stopping_ && ::fuse_session_exited(session_) == 0) {
    const int received = ::fuse_session_receive_buf(session_, &buffer);
    if (received == -EINTR || received == -EAGAIN) continue;
    if (received <= 0) break;
    ++in_service_;
    ::fuse_session_process_buf(session_, &buffer);
    --in_service_;
  }
  ::free(buffer.mem);  // NOLINT(cppcoreguidelines-no-malloc): libfuse allocated it so
  if (--running_ == 0) ended_();
}

ssize_t FuseSession::ReadRequest(int channel, void* buffer, size_t size) {
  ssize_t got = -1;
  errno = EAGAIN;
  if (spin_ns_ > 0 && !someone_spins_.exchange(true)) {
    const int flags = ::fcntl(channel, F_GETFL);
    ::fcntl(channel, F_SETFL, flags | O_NONBLOCK);
    const int64_t until_ns = MonotonicNs() + spin_ns_;
    do {
      got = ::read(channel, buffer, size);
    } while (got < 0 && errno == EAGAIN && !stopping_ && MonotonicNs() < until_ns);
    const int error = errno;
    ::fcntl(channel, F_SETFL, flags);
    someone_spins_ = false;
    errno = error;
  }
  if (got < 0 && errno == EAGAIN) got = ::read(channel, buffer, size);
  if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return got;
  ++requests_;
  fuse_in_header header{};
  std::memcpy(&header, buffer, sizeof(header));
  fuse_init_in init{};
  if (header.opcode == FUSE_INIT && static_cast<size_t>(got) >= sizeof(header) + sizeof(init)) {
    std::memcpy(&init, static_cast<const char*>(buffer) + sizeof(header), sizeof(init));
    if ((init.flags & FUSE_HANDLE_KILLPRIV_V2) != 0) init_request_ = header.unique;
  }
  return got;
}

ssize_t FuseSession::WriteAnswer(int channel, iovec* parts, int count) {
  if (init_request_ != 0 && count == 2 && parts[0].iov_len == sizeof(fuse_out_header)) {
    fuse_out_header header{};
    std::memcpy(&header, parts[0].iov_base, sizeof(header));
    constexpr size_t kFlagsEnd = offsetof(fuse_init_out, flags) + sizeof(uint32_t);
    if (header.unique == init_request_ && header.error == 0 && parts[1].iov_len >= kFlagsEnd) {
      auto* flags = static_cast<char*>(parts[1].iov_base) + offsetof(fuse_init_out, flags);
      uint32_t wanted = 0;
      std::memcpy(&wanted, flags, sizeof(wanted));
      wanted |= FUSE_HANDLE_KILLPRIV_V2;
      std::memcpy(flags, &wanted, sizeof(wanted));
      init_request_ = 0;
    }
  }
  return ::writev(channel, parts, count);
}

Status FuseSession::Unmount() {
  const Shown shown = WhatIsShown();
  if (shown == Shown::kThis) {
    // Other users of the mount, with open files or in a namespace of their own, may keep it alive behind the unmount.
    {
      const FileDescriptor root(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (root.get() >= 0) (void)::syncfs(root.get());  // what fails is reported to those who wrote, by fsync and close
    }
    // Also where files are open; the channels of the threads go on.
    if (::umount2(directory_.c_str(), UMOUNT_NOFOLLOW) != 0) ::fuse_session_unmount(session_);
  }
  if (shown == Shown::kAnother) {
    Log().warn("another mount covers that of {}; unmount that one, and then what is left of this: umount {}",
               directory_, directory_);
  }
  const bool quiet = WaitUntilQuiet();
  EndThreads();
  if (quiet) return Status::Ok();
  return Status::Busy(
      fmt::format("programs still wrote to {} while it was unmounted; what they wrote last is lost", directory_));
}

FuseSession::Shown FuseSession::WhatIsShown() const {
  const auto mounted = FindMount(directory_);
  if (!mounted.ok()) return Shown::kNothing;
  return mounted->number == number_ ? Shown::kThis : Shown::kAnother;
}

bool FuseSession::WaitUntilQuiet() const {
  constexpr std::chrono::milliseconds kLook(20);
  constexpr int kQuietLooks = 5;  // in a row
  constexpr int kMostLooks = 250;
  uint64_t before = requests_;
  for (int looks = 0, quiet = 0; quiet < kQuietLooks && running_ > 0; ++looks) {
    if (looks == kMostLooks) return false;
    std::this_thread::sleep_for(kLook);
    const uint64_t now = requests_;
    quiet = now == before && in_service_ == 0 ? quiet + 1 : 0;
    before = now;
  }
  return true;
}

void FuseSession::EndThreads() {
  stopping_ = true;
  ::fuse_session_exit(session_);
  // A signal that comes just before a thread reads is lost, so it is sent until all have ended.
  while (running_ > 0) {
    for (std::thread& thread : threads_) ::pthread_kill(thread.native_handle(), kWakeSignal);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace isozone
