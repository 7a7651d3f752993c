#include "device/export/ublk_queue.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kWakeTag = UINT64_MAX;  // of the read of the eventfd; all others are tags of requests

size_t PageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

size_t DescriptorBytes(uint32_t depth) { return RoundUp(depth * sizeof(ublk::RequestDescriptor), PageSize()); }

// A submission or wait that failed for the moment.
bool IsTransient(int error) { return error == EAGAIN || error == EBUSY || error == EINTR || error == ENOMEM; }

}  // namespace

Result<std::unique_ptr<UblkQueue>> UblkQueue::Open(int fd, uint16_t number, uint16_t depth) {
  std::unique_ptr<UblkQueue> queue(new UblkQueue(fd, number, depth));
  ISOZONE_RETURN_IF_ERROR(queue->SetUp());
  ISOZONE_RETURN_IF_ERROR(queue->Fetch());
  return queue;
}

UblkQueue::~UblkQueue() {
  if (ring_.ring_fd >= 0) ::io_uring_queue_exit(&ring_);
  if (descriptors_ != nullptr) {
    ::munmap(const_cast<ublk::RequestDescriptor*>(descriptors_), DescriptorBytes(depth_));
  }
}

Status UblkQueue::SetUp() {
  // A command for each tag, and the read of the eventfd.
  const int error = -::io_uring_queue_init(std::bit_ceil(uint32_t{depth_} + 1), &ring_, 0);
  if (error != 0) {
    ring_.ring_fd = -1;
    return Status::FromErrno(error, "cannot make an io_uring for a queue");
  }
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (wake_.get() < 0) return Status::FromErrno(errno, "cannot make an eventfd");
  const auto position = static_cast<off_t>(number_ * DescriptorBytes(ublk::kMaxDepth));
  void* const memory = ::mmap(nullptr, DescriptorBytes(depth_), PROT_READ, MAP_SHARED | MAP_POPULATE, fd_, position);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "cannot map the requests of a queue");
  descriptors_ = static_cast<const ublk::RequestDescriptor*>(memory);
  WaitForWake();
  return Status::Ok();
}

Status UblkQueue::Fetch() {
  for (uint16_t tag = 0; tag < depth_; ++tag) Prepare(ublk::kFetch, {number_, tag, 0, 0});
  int submitted = 0;
  do {
    submitted = ::io_uring_submit(&ring_);
  } while (submitted < 0 && IsTransient(-submitted));
  if (submitted < 0) return Status::FromErrno(-submitted, "cannot send the first commands of a queue");
  // The kernel answers at once where it refuses, and otherwise when there is a request.
  if (const int error = Take(early_); error != 0) {
    return Status::FromErrno(error, "the kernel refuses the server of a queue");
  }
  return Status::Ok();
}

void UblkQueue::Prepare(uint32_t command, const ublk::IoCommand& payload) {
  io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);  // never null: there is one for each tag
  ::io_uring_prep_rw(IORING_OP_URING_CMD, entry, fd_, nullptr, 0, 0);
  entry->cmd_op = command;
  std::memcpy(entry->cmd, &payload, sizeof(payload));
  ::io_uring_sqe_set_data64(entry, payload.tag);
  ++fetching_;
}

void UblkQueue::WaitForWake() {
  io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
  ::io_uring_prep_read(entry, wake_.get(), &wakes_, sizeof(wakes_), 0);
  ::io_uring_sqe_set_data64(entry, kWakeTag);
}

int UblkQueue::Wait(std::vector<uint16_t>& arrived) {
  if (!early_.empty()) {
    arrived.insert(arrived.end(), early_.begin(), early_.end());
    early_.clear();
    return 0;
  }
  if (fetching_ == 0 && held_ == 0) return ENODEV;
  int error = 0;
  do {
    error = -::io_uring_submit_and_wait(&ring_, 1);
    if (error > 0 && IsTransient(error)) ::sched_yield();
  } while (error > 0 && IsTransient(error));
  if (error > 0) {
    // Nothing that the kernel has can be answered any more. It gives it to the next server when this process ends.
    Log().critical("the kernel takes no more results of an exported device: {}", std::strerror(error));
    std::abort();
  }
  Take(arrived);  // commands that end with an error are of a device that was stopped
  return 0;
}

int UblkQueue::Take(std::vector<uint16_t>& arrived) {
  int error = 0;
  io_uring_cqe* completion = nullptr;
  while (::io_uring_peek_cqe(&ring_, &completion) == 0) {
    const uint64_t tag = completion->user_data;
    const int result = completion->res;
    ::io_uring_cqe_seen(&ring_, completion);
    if (tag == kWakeTag) {
      WaitForWake();
      continue;
    }
    --fetching_;
    if (result != 0) {
      error = -result;
      continue;
    }
    ++held_;
    arrived.push_back(static_cast<uint16_t>(tag));
  }
  return error;
}

ublk::RequestDescriptor UblkQueue::Describe(uint16_t tag) const { return descriptors_[tag]; }

int UblkQueue::CopyIn(uint16_t tag, std::span<std::byte> out) {
  auto position = static_cast<off_t>(ublk::DataPosition(number_, tag));
  while (!out.empty()) {
    const ssize_t moved = ::pread(fd_, out.data(), out.size(), position);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved == 0 ? EIO : errno;
    position += moved;
    out = out.subspan(static_cast<size_t>(moved));
  }
  return 0;
}

int UblkQueue::CopyOut(uint16_t tag, std::span<const std::byte> data) {
  auto position = static_cast<off_t>(ublk::DataPosition(number_, tag));
  while (!data.empty()) {
    const ssize_t moved = ::pwrite(fd_, data.data(), data.size(), position);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved == 0 ? EIO : errno;
    position += moved;
    data = data.subspan(static_cast<size_t>(moved));
  }
  return 0;
}

void UblkQueue::Commit(uint16_t tag, int32_t result, uint64_t append_sector) {
  --held_;
  Prepare(ublk::kCommitAndFetch, {number_, tag, result, append_sector});
}

void UblkQueue::Wake() {
  const uint64_t one = 1;
  // The counter cannot overflow, so that a write never fails.
  while (::write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

}  // namespace isozone
