// TransferCalls: what a transfer becomes at the kernel, as a submission to io_uring or as a system call that blocks.
//
//   FileCalls   reads and writes of an open file: preadv, pwritev2 and fdatasync
//   NvmeCalls   commands of NVMe (nvme_calls.h)
//
// Thread safety: objects do not change.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <string_view>

#include "device/linux/block_kernel.h"

namespace isozone {

class TransferCalls {
 public:
  virtual ~TransferCalls() = default;

  // Returns what people read in front of the way in which transfers reach the kernel: nothing, or "NVMe passthrough, ".
  virtual std::string_view name() const = 0;
  // Says to people why no ring is used although the kernel may offer one; empty if one is used.
  virtual std::string_view why_no_ring() const = 0;
  // Returns the flags of io_uring_setup that such submissions need.
  virtual uint32_t ring_flags() const = 0;
  // Fills in `entry`, but for its flags and user data. `file` is the descriptor, or its number in the ring.
  virtual void Prepare(const KernelTransfer& transfer, int file, io_uring_sqe& entry) const = 0;
  // Returns what belongs into KernelTransfer::result once the kernel has answered a submission.
  virtual int64_t ResultOf(const KernelTransfer& transfer, int answer) const = 0;
  // Carries the transfer out, and returns what belongs into KernelTransfer::result. Blocks.
  virtual int64_t Call(const KernelTransfer& transfer) const = 0;
};

class FileCalls final : public TransferCalls {
 public:
  // Returns the one object of this class.
  static const FileCalls& Get();

  std::string_view name() const override { return ""; }
  std::string_view why_no_ring() const override { return ""; }
  uint32_t ring_flags() const override { return 0; }
  void Prepare(const KernelTransfer& transfer, int file, io_uring_sqe& entry) const override;
  int64_t ResultOf(const KernelTransfer& /*transfer*/, int answer) const override { return answer; }
  int64_t Call(const KernelTransfer& transfer) const override;
};

}  // namespace isozone
