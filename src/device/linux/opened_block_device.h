// OpenedBlockDevice: the kernel's side of a zoned block device that a program has open. Where the program has the
// character device of the same NVMe namespace open as well, transfers are commands to that. What the host has not
// carried out there, such as a read while the controller is reset, is sent again by the block device.
//
// Thread safety: that of BlockKernel.
#pragma once

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/linux/block_kernel.h"
#include "device/linux/kernel_release.h"
#include "device/linux/nvme_calls.h"
#include "device/linux/nvme_namespace.h"
#include "device/linux/transfers.h"

namespace isozone {

class OpenedBlockDevice final : public BlockKernel {
 public:
  // Takes over `fd`, which is open with O_DIRECT, for writing if the device is to be changed. kNotSupported if `path`
  // is kRing and the kernel refuses it. `kernel` is the one that has the device.
  static Result<std::unique_ptr<BlockKernel>> Create(FileDescriptor fd, TransferPath path,
                                                     KernelRelease kernel = RunningKernel());

  // Takes over the character device of the namespace as well, and sends it all transfers. Reads its first block, to see
  // that commands reach it, whatever it answers: kNotSupported or kPermissionDenied if they do not.
  static Result<std::unique_ptr<BlockKernel>> CreatePassing(FileDescriptor fd, TransferPath path,
                                                            OpenedNamespace passing, const QueueFacts& facts);

  void Start(KernelTransfer& transfer) override;
  int ReportZones(uint64_t position, std::span<KernelZone> out) const override;
  int Manage(ZoneCommand command, uint64_t position, uint64_t length) override;
  std::string path() const override;
  bool may_err_about_pointers() const override { return has_pointers_; }
  std::string transfer_path() const override { return transfers_->name(); }

 private:
  explicit OpenedBlockDevice(FileDescriptor fd) : fd_(std::move(fd)) {}

  // Sends a read of the first block. Returns 0 if it reached the device, or the error of the kernel.
  int Probe(const QueueFacts& facts, bool may_block);

  const FileDescriptor fd_;
  bool has_pointers_ = false;         // the kernel has write pointers that writes of this object must meet
  OpenedNamespace passing_;           // its descriptor is -1 if there is none
  std::unique_ptr<NvmeCalls> calls_;  // null if there is no such namespace
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<Transfers> rescuers_;  // send again by the block device; null if all transfers go that way
};

}  // namespace isozone
