// NvmeCalls: transfers as commands of NVMe, which the kernel passes through to a namespace: by io_uring with
// IORING_OP_URING_CMD, or by an ioctl. KernelTransfer::file is the character device of the namespace, such as
// /dev/ng0n1.
//
// io_uring has such commands from Linux 5.19 on, and is used from 6.7 on. Before, unless a stable release has the fix
// (6.1.63, 6.5.12, 6.6.2: "nvme: fix error-handling for io_uring nvme-passthrough"), it answers 0 for a command that
// the driver has failed before it sent it: a write would be taken for done.
//
//   read    Read, opcode 02h
//   write   Write, opcode 01h; a durable one with Force Unit Access
//   flush   Flush, opcode 00h
//
// The kernel neither splits such a command nor sends it again. It answers with the status of NVMe, which becomes the
// error that a block device would have for it, so that the rest of this folder sees no difference. A read or flush that
// the controller has not carried out, or that may succeed later (no Do Not Retry), becomes EAGAIN. LinuxDevice sends
// it again, and then by the block device, where the kernel waits until the controller is back.
//
// Thread safety: that of TransferCalls.
#pragma once

#include <linux/nvme_ioctl.h>

#include <cstdint>
#include <string_view>

#include "device/linux/kernel_release.h"
#include "device/linux/transfer_calls.h"

namespace isozone {

class NvmeCalls final : public TransferCalls {
 public:
  // `id` is the number of the namespace, `block_size` its block in bytes, a power of two, and `kernel` the one that
  // carries the calls out.
  NvmeCalls(uint32_t id, uint32_t block_size, KernelRelease kernel = RunningKernel())
      : id_(id), block_size_(block_size), kernel_(kernel) {}

  std::string_view name() const override { return "NVMe passthrough, "; }
  std::string_view why_no_ring() const override;
  uint32_t ring_flags() const override { return IORING_SETUP_SQE128 | IORING_SETUP_CQE32; }
  void Prepare(const KernelTransfer& transfer, int file, io_uring_sqe& entry) const override;
  int64_t ResultOf(const KernelTransfer& transfer, int answer) const override;
  int64_t Call(const KernelTransfer& transfer) const override;

  nvme_uring_cmd CommandOf(const KernelTransfer& transfer) const;

 private:
  const uint32_t id_;
  const uint32_t block_size_;
  const KernelRelease kernel_;
};

// Returns the error of a block device (errno) for a status of NVMe that is not 0: its code and type, as the kernel
// answers them. Two differ from what the kernel makes of them, which is EIO: Namespace is Write Protected is EPERM, and
// all statuses of paths are ENOLINK, not only Host Path Error.
int ErrorOfNvme(uint16_t status);

}  // namespace isozone
