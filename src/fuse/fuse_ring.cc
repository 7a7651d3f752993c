#include "fuse/fuse_ring.h"

#include <linux/fuse.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/cpu_affinity.h"

namespace isozone {
namespace {

// The kernel's interface, of include/uapi/linux/fuse.h in version 7.42.
enum RingCommand : uint32_t { kRegister = 1, kCommitAndFetch = 2 };

struct CommandBody {
  uint64_t flags = 0;
  uint64_t commit_id = 0;  // of the request that is answered
  uint16_t queue = 0;
  std::array<uint8_t, 6> padding{};
};
static_assert(sizeof(CommandBody) == 24);

constexpr size_t kPartSize = 128;
// One thread uses the ring, in which alone the kernel hands over requests, while it waits for them.
constexpr uint32_t kRingFlags =
    IORING_SETUP_SQE128 | IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;

}  // namespace

struct FuseRing::Exchange {
  std::array<std::byte, kPartSize> header;     // fuse_in_header, fuse_out_header
  std::array<std::byte, kPartSize> operation;  // of the request
  uint64_t flags;
  uint64_t commit_id;
  uint32_t data_size;
  uint32_t padding;
  uint64_t reserved;
};

Status FuseRing::CheckEnabled() {
  static constexpr const char* kParameter = "/sys/module/fuse/parameters/enable_uring";
  std::ifstream file(kParameter);
  if (!file) return Status::NotSupported("this kernel has no FUSE by io_uring; Linux 6.14 and later can have it");
  if (file.get() == 'Y') return Status::Ok();
  return Status::NotSupported(fmt::format("the kernel's FUSE by io_uring is off; echo Y > {}", kParameter));
}

Result<uint16_t> FuseRing::CountQueues() {
  std::ifstream file("/sys/devices/system/cpu/possible");
  std::string line;
  std::getline(file, line);
  uint16_t last = 0;
  const std::string_view range = line == "0" ? "0-0" : std::string_view(line);
  if (range.starts_with("0-")) {
    const auto [end, error] = std::from_chars(range.data() + 2, range.data() + range.size(), last);
    if (error == std::errc() && end == range.data() + range.size()) return static_cast<uint16_t>(last + 1);
  }
  return Status::NotSupported(fmt::format("the CPUs of this machine, '{}', are not all from 0 to a number", line));
}

FuseRing::FuseRing(int channel, uint16_t queue)
    : channel_(channel), queue_(queue), memory_(2 * kPage + kLongestRequest) {
  exchange() = {};
  parts_[0] = {memory_.data(), sizeof(Exchange)};
  parts_[1] = {answer_data().data(), kLongestRequest};
}

Result<std::unique_ptr<FuseRing>> FuseRing::Make(int channel, uint16_t queue) {
  std::unique_ptr<FuseRing> made(new FuseRing(channel, queue));
  if (const int error = ::io_uring_queue_init(1, &made->ring_, kRingFlags); error != 0) {
    return Status::NotSupported(fmt::format("no io_uring for FUSE: {}", std::strerror(-error)));
  }
  made->made_ = true;
  return made;
}

FuseRing::~FuseRing() {
  if (made_) ::io_uring_queue_exit(&ring_);
}

FuseRing::Exchange& FuseRing::exchange() { return *reinterpret_cast<Exchange*>(memory_.data()); }

Status FuseRing::Begin() {
  StayOnCpu(queue_);
  // liburing 2.3 has a function for it, but does not export that.
  if (::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) != 0) {
    return Status::NotSupported(fmt::format("io_uring cannot be used: {}", std::strerror(errno)));
  }
  ::io_uring_prep_nop(::io_uring_get_sqe(&ring_));
  int result = -EINTR;
  while (result == -EINTR) result = WaitForResult();
  return result == 0 ? Status::Ok()
                     : Status::NotSupported(fmt::format("io_uring cannot be used: {}", std::strerror(-result)));
}

int FuseRing::Next(fuse_buf& request) {
  if (!waiting_) Submit();
  waiting_ = true;
  const int result = WaitForResult();
  waiting_ = result == -EINTR;
  if (result < 0) return result;
  registered_ = true;
  if (::sched_getcpu() != queue_) StayOnCpu(queue_);
  return Receive(request);
}

int FuseRing::WaitForResult() {
  const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
  if (submitted == -EAGAIN || submitted == -EBUSY) return -EINTR;  // no memory for it yet
  if (submitted < 0) return submitted;
  io_uring_cqe* completion = nullptr;
  if (::io_uring_peek_cqe(&ring_, &completion) != 0) return -EINTR;
  const int result = completion->res;
  ::io_uring_cqe_seen(&ring_, completion);
  return result;
}

void FuseRing::Submit() {
  if (registered_ && !answered_) {
    fuse_out_header header{sizeof(header), -EIO, request_};
    const iovec part{&header, sizeof(header)};
    (void)Answer(&part, 1);
  }
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);  // there is one: a single command is under way at a time
  ::io_uring_prep_rw(IORING_OP_URING_CMD, entry, channel_, nullptr, 0, 0);
  entry->cmd_op = registered_ ? kCommitAndFetch : kRegister;
  if (!registered_) {
    entry->addr = reinterpret_cast<uint64_t>(parts_.data());
    entry->len = static_cast<uint32_t>(parts_.size());
  }
  CommandBody body;
  body.commit_id = exchange().commit_id;
  body.queue = queue_;
  // The entry is of 128 bytes, by IORING_SETUP_SQE128, and the command is the rest of it.
  std::memcpy(reinterpret_cast<std::byte*>(entry) + offsetof(io_uring_sqe, cmd), &body, sizeof(body));
}

int FuseRing::Receive(fuse_buf& request) {
  const Exchange& parts = exchange();
  fuse_in_header header{};
  std::memcpy(&header, parts.header.data(), sizeof(header));
  request_ = header.unique;
  answered_ = false;
  const size_t operation = size_t{header.len} - sizeof(header) - parts.data_size;
  if (operation > parts.operation.size()) return -EPROTO;
  std::byte* begin = answer_data().data() - operation - sizeof(header);
  std::memcpy(begin, &header, sizeof(header));
  std::memcpy(begin + sizeof(header), parts.operation.data(), operation);
  request = {};
  request.mem = begin;
  request.size = header.len;
  return 0;
}

ssize_t FuseRing::Answer(const iovec* parts, int count) {
  Exchange& answer = exchange();
  std::memcpy(answer.header.data(), parts[0].iov_base, sizeof(fuse_out_header));
  size_t size = 0;
  for (const iovec& part : std::span(parts, static_cast<size_t>(count)).subspan(1)) {
    if (part.iov_len > kLongestRequest - size) {
      errno = EMSGSIZE;
      return -1;
    }
    std::byte* target = answer_data().data() + size;
    if (part.iov_len > 0 && part.iov_base != target) std::memmove(target, part.iov_base, part.iov_len);
    size += part.iov_len;
  }
  answer.data_size = static_cast<uint32_t>(size);
  answered_ = true;
  return static_cast<ssize_t>(sizeof(fuse_out_header) + size);
}

}  // namespace isozone
