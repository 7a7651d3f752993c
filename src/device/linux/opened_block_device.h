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
#include "device/linux/nvme_calls.h"
#include "device/linux/nvme_namespace.h"
#include "device/linux/transfers.h"

namespace isozone {

class OpenedBlockDevice final : public BlockKernel {
 public:
  // Takes over `fd`, which is open with O_DIRECT, for writing if the device is to be changed. kNotSupported if `path`
  // is kRing and the kernel refuses it.
  static Result<std::unique_ptr<BlockKernel>> Create(FileDescriptor fd, TransferPath path);

  // The same with the character device of its namespace. Sends commands behind the end of the device, which it answers
  // with an error: kNotSupported or kPermissionDenied if the kernel does so instead.
  static Result<std::unique_ptr<BlockKernel>> CreatePassing(FileDescriptor fd, TransferPath path,
                                                            OpenedNamespace passing, const QueueFacts& facts,
                                                            OpenMode mode);

  void Start(KernelTransfer& transfer) override;
  int ReportZones(uint64_t position, std::span<KernelZone> out) const override;
  int Manage(ZoneCommand command, uint64_t position, uint64_t length) override;
  std::string path() const override;
  bool may_err_about_pointers() const override { return true; }
  std::string transfer_path() const override { return transfers_->name(); }

 private:
  explicit OpenedBlockDevice(FileDescriptor fd) : fd_(std::move(fd)) {}

  // Whether commands reach the device: 0, or the error of the kernel.
  int Probe(const QueueFacts& facts, OpenMode mode, bool may_block);

  const FileDescriptor fd_;
  OpenedNamespace passing_;           // its descriptor is -1 if there is none
  std::unique_ptr<NvmeCalls> calls_;  // null if there is no such namespace
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<Transfers> rescuers_;  // by the block device; null if all transfers are
};

}  // namespace isozone
