#include "device/linux/nvme_calls.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace isozone {
namespace {

// NVM Command Set: opcodes, and a bit of a write.
constexpr uint8_t kFlush = 0x00;
constexpr uint8_t kWrite = 0x01;
constexpr uint8_t kRead = 0x02;
constexpr uint32_t kForceUnitAccess = 1U << 30;

// NVMe: parts of a status, without its phase. The type 3 is that of paths: the command did not reach the namespace, or
// its answer not the host.
constexpr uint16_t kCode = 0x7FF;
constexpr uint16_t kType = 0x700;
constexpr uint16_t kPathType = 0x300;
constexpr uint16_t kDoNotRetry = 0x4000;
constexpr uint16_t kInvalidOpcode = 0x001;
constexpr uint16_t kInvalidField = 0x002;
constexpr uint16_t kAborted = 0x007;           // Command Abort Requested
constexpr uint16_t kQueueDeleted = 0x008;      // Command Aborted due to SQ Deletion
constexpr uint16_t kInvalidNamespace = 0x00B;  // or its format
constexpr uint16_t kWriteProtected = 0x020;    // Namespace is Write Protected
constexpr uint16_t kInterrupted = 0x021;       // Command Interrupted
constexpr uint16_t kOutOfRange = 0x080;        // LBA Out of Range
constexpr uint16_t kCapacity = 0x081;          // Capacity Exceeded
constexpr uint16_t kNotReady = 0x082;          // Namespace Not Ready
constexpr uint16_t kConflict = 0x083;          // Reservation Conflict
constexpr uint16_t kConflictingAttributes = 0x180;
constexpr uint16_t kInvalidProtection = 0x181;  // Invalid Protection Information
constexpr uint16_t kReadOnlyRange = 0x182;      // Attempted Write to Read Only Range
constexpr uint16_t kTooManyActive = 0x1BD;
constexpr uint16_t kTooManyOpen = 0x1BE;
constexpr uint16_t kWriteFault = 0x280;
constexpr uint16_t kReadError = 0x281;
constexpr uint16_t kGuardCheck = 0x282;
constexpr uint16_t kApplicationTagCheck = 0x283;
constexpr uint16_t kReferenceTagCheck = 0x284;
constexpr uint16_t kCompareFailure = 0x285;
constexpr uint16_t kAccessDenied = 0x286;
constexpr uint16_t kUnwritten = 0x287;  // Deallocated or Unwritten Logical Block

bool MayPass(uint16_t status) {
  const uint16_t code = status & kCode;
  const bool is_lost = (code & kType) == kPathType || code == kAborted || code == kQueueDeleted;
  return is_lost || (status & kDoNotRetry) == 0;
}

}  // namespace

int ErrorOfNvme(uint16_t status) {
  switch (status & kCode) {
    case kTooManyActive:
      return EOVERFLOW;
    case kTooManyOpen:
      return ETOOMANYREFS;
    case kCapacity:
      return ENOSPC;
    case kOutOfRange:
    case kInterrupted:
    case kNotReady:
      return EREMOTEIO;
    case kInvalidOpcode:
    case kInvalidField:
    case kInvalidNamespace:
    case kConflictingAttributes:
      return EOPNOTSUPP;
    case kConflict:
      return EBADE;
    case kWriteProtected:
      return EPERM;
    case kWriteFault:
    case kReadError:
    case kCompareFailure:
    case kAccessDenied:
    case kReadOnlyRange:
    case kUnwritten:
      return ENODATA;
    case kInvalidProtection:
    case kGuardCheck:
    case kApplicationTagCheck:
    case kReferenceTagCheck:
      return EILSEQ;
    default:
      return (status & kType) == kPathType ? ENOLINK : EIO;
  }
}

std::string_view NvmeCalls::why_no_ring() const {
  constexpr KernelRelease kTellsErrors{6, 7};
  return kernel_ < kTellsErrors ? "Linux before 6.7 loses errors of NVMe commands" : "";
}

nvme_uring_cmd NvmeCalls::CommandOf(const KernelTransfer& transfer) const {
  nvme_uring_cmd command{};
  command.nsid = id_;
  if (transfer.kind == KernelTransfer::Kind::kFlush) {
    command.opcode = kFlush;
    return command;
  }
  const uint64_t block = transfer.position / block_size_;
  command.opcode = transfer.kind == KernelTransfer::Kind::kRead ? kRead : kWrite;
  command.addr = reinterpret_cast<uint64_t>(transfer.data);
  command.data_len = static_cast<uint32_t>(transfer.length);
  command.cdw10 = static_cast<uint32_t>(block);
  command.cdw11 = static_cast<uint32_t>(block >> 32);
  command.cdw12 = static_cast<uint32_t>(transfer.length / block_size_ - 1) | (transfer.durable ? kForceUnitAccess : 0);
  return command;
}

void NvmeCalls::Prepare(const KernelTransfer& transfer, int file, io_uring_sqe& entry) const {
  const nvme_uring_cmd command = CommandOf(transfer);
  std::memset(static_cast<void*>(&entry), 0, 2 * sizeof(entry));  // in such a ring an entry has twice the size
  entry.opcode = IORING_OP_URING_CMD;
  entry.fd = file;
  entry.cmd_op = NVME_URING_CMD_IO;
  std::memcpy(static_cast<void*>(entry.cmd), &command, sizeof(command));
}

int64_t NvmeCalls::ResultOf(const KernelTransfer& transfer, int answer) const {
  if (transfer.is_probe && (answer >= 0 || answer == -EINTR)) return static_cast<int64_t>(transfer.length);
  const bool is_write = transfer.kind == KernelTransfer::Kind::kWrite;
  if (answer == -EINTR && is_write) return -ENOLINK;  // the kernel has given a controller up that did not answer
  if (answer < 0) return answer;
  if (answer == 0) return transfer.kind == KernelTransfer::Kind::kFlush ? 0 : static_cast<int64_t>(transfer.length);
  const auto status = static_cast<uint16_t>(answer);
  return !is_write && MayPass(status) ? -EAGAIN : -ErrorOfNvme(status);
}

int64_t NvmeCalls::Call(const KernelTransfer& transfer) const {
  const nvme_uring_cmd command = CommandOf(transfer);
  nvme_passthru_cmd64 call{};
  call.opcode = command.opcode;
  call.nsid = command.nsid;
  call.addr = command.addr;
  call.data_len = command.data_len;
  call.cdw10 = command.cdw10;
  call.cdw11 = command.cdw11;
  call.cdw12 = command.cdw12;
  const int answer = ::ioctl(transfer.file, NVME_IOCTL_IO64_CMD, &call);
  return ResultOf(transfer, answer < 0 ? -errno : answer);
}

}  // namespace isozone
