// OpenedBlockDevice: the kernel's side of a zoned block device that a program has open.
//
// Thread safety: that of BlockKernel.
#pragma once

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/linux/block_kernel.h"
#include "device/linux/transfers.h"

namespace isozone {

class OpenedBlockDevice final : public BlockKernel {
 public:
  // Takes over `fd`, which is open with O_DIRECT, for writing if the device is to be changed. kNotSupported if `path`
  // is kRing and the kernel refuses it.
  static Result<std::unique_ptr<BlockKernel>> Create(FileDescriptor fd, TransferPath path);

  void Start(KernelTransfer& transfer) override {
    transfer.file = fd_.get();
    transfers_->Start(transfer);
  }
  int ReportZones(uint64_t position, std::span<KernelZone> out) const override;
  int Manage(ZoneCommand command, uint64_t position, uint64_t length) override;
  std::string path() const override;
  std::string transfer_path() const override { return transfers_->name(); }

 private:
  explicit OpenedBlockDevice(FileDescriptor fd) : fd_(std::move(fd)) {}

  const FileDescriptor fd_;
  std::unique_ptr<Transfers> transfers_;
};

}  // namespace isozone
