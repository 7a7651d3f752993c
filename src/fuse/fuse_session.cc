#include "fuse/fuse_session.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "base/log.h"
#include "base/no_thread.h"
#include "base/thread.h"
#include "fuse/fuse_messages.h"
#include "fuse/mount_directory.h"

namespace isozone {
namespace {

constexpr const char* kFuseDevice = "/dev/fuse";
constexpr uint32_t kLeastOfQueue = 2;  // rings, so that one request that waits does not hold up those behind it
constexpr int kWakeSignal = SIGUSR2;

// The session of this thread, and its channel or ring. libfuse passes on none of them.
thread_local FuseSession* this_session = nullptr;
thread_local int this_channel = -1;
thread_local FuseRing* this_ring = nullptr;

constexpr uint64_t kOverIoUring = uint64_t{1} << 41;  // of FUSE_INIT, since version 7.42

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
  const bool forbidden = errno == EACCES || errno == EPERM;
  return Status::FromErrno(errno,
                           forbidden ? "cannot open /dev/fuse, which its group or root may" : "cannot open /dev/fuse");
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

// `said`: by libfuse and fusermount3.
Status MountFailure(const std::string& directory, const std::string& said) {
  const auto says = [&said](const char* words) { return said.find(words) != std::string::npos; };
  if (says("fork() failed"))
    return NoThread("cannot run fusermount3", std::error_code(EAGAIN, std::generic_category()));
  if (says("Too many open files")) return Status::FromErrno(EMFILE, fmt::format("cannot mount on {}", directory));
  const char* advice = "";
  if (says("failed to exec")) {
    advice = "; it is in the package fuse3";
  } else if (says("Operation not permitted") && ::geteuid() != 0) {
    advice = "; it needs its set-user-ID bit, which nosuid and NoNewPrivileges take from it";
  }
  return Status::PermissionDenied(fmt::format("cannot mount on {}: {}{}", directory, said, advice));
}

}  // namespace

FuseSession::FuseSession(std::string directory, const FuseOptions& options)
    : directory_(std::move(directory)), thread_count_(options.threads), io_uring_(options.io_uring) {}

Result<std::unique_ptr<FuseSession>> FuseSession::Mount(const fuse_lowlevel_ops& operations, void* user_data,
                                                        const std::string& directory, const std::string& source,
                                                        const FuseOptions& options) {
  ISOZONE_RETURN_IF_ERROR(CheckFuseDevice());
  std::unique_ptr<FuseSession> made(new FuseSession(directory, options));
  std::array<std::string, 3> words = {"isozone", "-o", OptionList(source, options)};
  std::array<char*, 4> pointers = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  fuse_args arguments{3, pointers.data(), 0};
  bool is_mounted = false;
  ISOZONE_ASSIGN_OR_RETURN(
      const std::string said, CollectFuseMessages([&] {
        made->session_ = ::fuse_session_new(&arguments, &operations, sizeof(operations), user_data);
        is_mounted = made->session_ != nullptr && ::fuse_session_mount(made->session_, directory.c_str()) == 0;
      }));
  ::fuse_opt_free_args(&arguments);
  if (made->session_ == nullptr) return Status::InvalidArgument(fmt::format("libfuse takes no such options: {}", said));
  if (!is_mounted) return MountFailure(directory, said);
  if (!said.empty()) Log().warn("{}: {}", directory, said);
  if (const auto mounted = FindMount(directory); mounted.ok()) {
    made->number_ = mounted->number;
    made->device_ = DeviceNumber(*mounted);
  }
  static const fuse_custom_io kIo = {
      [](int, iovec* parts, int count, void*) {
        return this_ring != nullptr ? this_ring->Answer(parts, count)
                                    : this_session->WriteAnswer(this_channel, parts, count);
      },
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
  rings_.clear();
  channels_.clear();
  // libfuse takes off whatever is on the directory.
  if (WhatIsShown() != Shown::kAnother) ::fuse_session_unmount(session_);
  ::fuse_session_destroy(session_);
}

Status FuseSession::Start(std::function<void()> ended) {
  PrepareWakeSignal();
  ISOZONE_RETURN_IF_ERROR(OpenChannels());
  ended_ = std::move(ended);
  running_ = 1;  // this function, so that `ended` is not called before all threads are there
  rings_started_ = StartRings();
  Status status;
  for (const FileDescriptor& channel : channels_) {
    if (status.ok()) status = StartThread([this, fd = channel.get()] { Serve(fd); });
  }
  ThreadEnded();
  return status;
}

Status FuseSession::StartThread(std::function<void()> serve) {
  ++running_;
  auto thread = isozone::StartThread("a mount", [this, serve = std::move(serve)] {
    serve();
    ThreadEnded();
  });
  const Status started = thread.status();
  if (started.ok()) {
    threads_.push_back(*std::move(thread));
  } else {
    --running_;
  }
  return started;
}

void FuseSession::ThreadEnded() {
  if (--running_ == 0) ended_();
}

Status FuseSession::OpenChannels() {
  for (uint32_t i = 0; i < thread_count_; ++i) {
    ISOZONE_ASSIGN_OR_RETURN(FileDescriptor channel, CloneChannel());
    channels_.push_back(std::move(channel));
  }
  return Status::Ok();
}

Status FuseSession::StartRings() {
  if (!io_uring_) return Status::NotSupported("the options of this mount want that");
  ISOZONE_RETURN_IF_ERROR(FuseRing::CheckEnabled());
  Status status = MakeRings();
  std::vector<Status> beginnings(rings_.size());  // of each ring, by its own thread
  {
    Latch begun;
    for (size_t i = 0; status.ok() && i < rings_.size(); ++i) {
      begun.Add();
      status = StartThread([this, &begun, &beginning = beginnings[i], &of_queue = of_queues_[i % of_queues_.size()],
                            ring = rings_[i].get()] {
        beginning = ring->Begin();
        begun.CountDown();
        ServeRing(*ring, of_queue);
      });
      if (!status.ok()) begun.CountDown();
    }
  }
  for (Status& beginning : beginnings) {
    if (status.ok()) status = std::move(beginning);
  }
  if (status.ok()) return status;
  Agree(Rings::kUnused);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  rings_.clear();
  return status;
}

Status FuseSession::WaitForRings() {
  agreed_.wait(Rings::kNotAgreed);
  if (!rings_started_.ok() || agreed_ == Rings::kUsed) return rings_started_;
  return Status::NotSupported("the kernel has not offered io_uring to this mount");
}

Status FuseSession::MakeRings() {
  rlimit files{};  // a ring is one, as long as this process lives
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  ISOZONE_ASSIGN_OR_RETURN(const uint16_t queues, FuseRing::CountQueues());
  const uint32_t of_queue = std::max(kLeastOfQueue, (thread_count_ + queues - 1) / queues);
  of_queues_.resize(queues);
  for (uint32_t i = 0; i < of_queue * queues; ++i) {
    ISOZONE_ASSIGN_OR_RETURN(auto ring, FuseRing::Make(::fuse_session_fd(session_), static_cast<uint16_t>(i % queues)));
    rings_.push_back(std::move(ring));
  }
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
  const ServingThreads::Membership member(of_channels_);
  this_channel = channel;
  fuse_buf buffer{};
  ServeRequests([this, &buffer](fuse_buf& request) {
    const int received = ::fuse_session_receive_buf(session_, &buffer);
    request = buffer;
    return received > 0 ? 0 : received == 0 ? -ENODEV : received;
  });
  ::free(buffer.mem);     // NOLINT(cppcoreguidelines-no-malloc): libfuse allocated it so
  Agree(Rings::kUnused);  // the mount may have ended before it was asked
}

void FuseSession::ServeRing(FuseRing& ring, ServingThreads& of_queue) {
  agreed_.wait(Rings::kNotAgreed);
  if (agreed_ != Rings::kUsed) return;
  ::pthread_setname_np(::pthread_self(), "isozone-ring");
  this_ring = &ring;
  const ServingThreads::Membership member(of_queue);
  const int error = ServeRequests([this, &ring](fuse_buf& request) {
    const int got = ring.Next(request);
    if (got == 0) ++requests_;
    return got;
  });
  const bool over = error == 0 || error == -ENOTCONN || error == -ECONNABORTED || error == -ECANCELED;
  if (over || stopping_) return;
  Log().error("a request by io_uring failed: {}; -o io_uring=off does without", std::strerror(-error));
  // The kernel goes on by /dev/fuse where FUSE refuses an entry, and waits for one that others forbid.
  if (!ring.registered() && (error == -EACCES || error == -EPERM)) ended_();
}

int FuseSession::ServeRequests(const std::function<int(fuse_buf& request)>& next) {
  this_session = this;
  fuse_buf request{};
  while (!stopping_ && ::fuse_session_exited(session_) == 0) {
    const int error = next(request);
    if (error == -EINTR || error == -EAGAIN) continue;
    if (error != 0) return error;
    ++in_service_;
    ::fuse_session_process_buf(session_, &request);
    --in_service_;
  }
  return 0;
}

std::span<std::byte> FuseSession::AnswerData() {
  if (this_ring != nullptr) return this_ring->answer_data();
  static thread_local AlignedBuffer buffer(kLongestRequest);
  return buffer.span();
}

ssize_t FuseSession::ReadRequest(int channel, void* buffer, size_t size) {
  const ssize_t got = ::read(channel, buffer, size);
  if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return got;
  ++requests_;
  fuse_in_header header{};
  std::memcpy(&header, buffer, sizeof(header));
  fuse_init_in init{};
  if (header.opcode == FUSE_INIT && static_cast<size_t>(got) >= sizeof(header) + sizeof(init)) {
    std::memcpy(&init, static_cast<const char*>(buffer) + sizeof(header), sizeof(init));
    offered_ = init.flags | ((init.flags & FUSE_INIT_EXT) != 0 ? uint64_t{init.flags2} << 32 : 0);
    init_request_ = header.unique;
  }
  return got;
}

ssize_t FuseSession::WriteAnswer(int channel, iovec* parts, int count) {
  fuse_out_header header{};
  if (parts[0].iov_len == sizeof(header)) std::memcpy(&header, parts[0].iov_base, sizeof(header));
  const bool is_init = init_request_ != 0 && header.unique == init_request_;
  if (!is_init) return ::writev(channel, parts, count);
  init_request_ = 0;
  const bool rings = header.error == 0 && count == 2 && CompleteInit(parts[1]);
  const ssize_t written = ::writev(channel, parts, count);
  Agree(rings && written > 0 ? Rings::kUsed : Rings::kUnused);
  return written;
}

void FuseSession::Agree(Rings rings) {
  Rings expected = Rings::kNotAgreed;
  agreed_.compare_exchange_strong(expected, rings);
  agreed_.notify_all();
}

bool FuseSession::CompleteInit(const iovec& answer) const {
  if (answer.iov_len < offsetof(fuse_init_out, flags2) + sizeof(uint32_t)) return false;
  fuse_init_out out{};
  std::memcpy(&out, answer.iov_base, std::min(answer.iov_len, sizeof(out)));
  out.flags |= static_cast<uint32_t>(offered_ & FUSE_HANDLE_KILLPRIV_V2);
  const bool rings = !rings_.empty() && (offered_ & kOverIoUring) != 0;
  if (rings) {
    out.flags |= FUSE_INIT_EXT;
    out.flags2 |= static_cast<uint32_t>(kOverIoUring >> 32);
  }
  std::memcpy(answer.iov_base, &out, std::min(answer.iov_len, sizeof(out)));
  return rings;
}

Status FuseSession::Unmount() {
  const Shown shown = WhatIsShown();
  if (shown == Shown::kThis) {
    // Other users of the mount, with open files or in a namespace of their own, may keep it in use behind the unmount.
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
  Agree(Rings::kUnused);
  // A signal that comes just before a thread reads is lost, so it is sent until all have ended.
  while (running_ > 0) {
    for (std::thread& thread : threads_) ::pthread_kill(thread.native_handle(), kWakeSignal);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace isozone
