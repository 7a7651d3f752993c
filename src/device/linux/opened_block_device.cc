#include "device/linux/opened_block_device.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "device/linux/refusals.h"
#include "device/linux/zone_layout.h"

namespace isozone {
namespace {

constexpr size_t kZonesOfReport = 4096;  // that one call to the kernel asks for: 256 KiB

unsigned long RequestOf(ZoneCommand command) {
  switch (command) {
    case ZoneCommand::kReset:
      return BLKRESETZONE;
    case ZoneCommand::kFinish:
      return BLKFINISHZONE;
    case ZoneCommand::kOpen:
      return BLKOPENZONE;
    case ZoneCommand::kClose:
      break;
  }
  return BLKCLOSEZONE;
}

int Control(int fd, unsigned long request, void* argument) {
  while (::ioctl(fd, request, argument) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<BlockKernel>> OpenedBlockDevice::Create(FileDescriptor fd, TransferPath path,
                                                               KernelRelease kernel) {
  constexpr KernelRelease kHasPointers{6, 10};  // its block layer plugs the writes of zones
  std::unique_ptr<OpenedBlockDevice> device(new OpenedBlockDevice(std::move(fd)));
  device->has_pointers_ = kernel >= kHasPointers;
  ISOZONE_ASSIGN_OR_RETURN(device->transfers_, Transfers::Make(path, device->fd_.get()));
  return std::unique_ptr<BlockKernel>(std::move(device));
}

Result<std::unique_ptr<BlockKernel>> OpenedBlockDevice::CreatePassing(FileDescriptor fd, TransferPath path,
                                                                      OpenedNamespace passing,
                                                                      const QueueFacts& facts) {
  std::unique_ptr<OpenedBlockDevice> device(new OpenedBlockDevice(std::move(fd)));
  device->passing_ = std::move(passing);
  device->calls_ = std::make_unique<NvmeCalls>(device->passing_.id, facts.logical_block);
  ISOZONE_ASSIGN_OR_RETURN(device->transfers_, Transfers::Make(path, device->passing_.commands.get(), *device->calls_));
  device->rescuers_ = std::make_unique<ThreadTransfers>("");
  for (const bool may_block : {false, true}) {
    const int error = device->Probe(facts, may_block);
    if (error == 0) continue;
    if (error == EACCES || error == EPERM) return CommandsForbidden(error);
    return Status::NotSupported(
        fmt::format("the kernel does not pass NVMe commands on: {}; name the block device", std::strerror(error)));
  }
  return std::unique_ptr<BlockKernel>(std::move(device));
}

int OpenedBlockDevice::Probe(const QueueFacts& facts, bool may_block) {
  AlignedBuffer block(facts.logical_block);
  KernelTransfer first;
  first.data = block.data();
  first.length = block.size();
  first.may_block = may_block;
  first.is_probe = true;
  Latch latch;
  latch.Expect(first);
  Start(first);
  latch.Wait();
  return first.result < 0 ? static_cast<int>(-first.result) : 0;
}

void OpenedBlockDevice::Start(KernelTransfer& transfer) {
  const bool passes = calls_ != nullptr && !transfer.resent;
  transfer.file = passes ? passing_.commands.get() : fd_.get();
  Transfers& transfers = passes || rescuers_ == nullptr ? *transfers_ : *rescuers_;
  transfers.Start(transfer);
}

int OpenedBlockDevice::ReportZones(uint64_t position, std::span<KernelZone> out) const {
  // A report and the zones behind it, as the kernel wants them in memory.
  std::vector<uint64_t> memory;
  while (!out.empty()) {
    const size_t count = std::min(out.size(), kZonesOfReport);
    memory.assign((sizeof(blk_zone_report) + count * sizeof(blk_zone)) / sizeof(uint64_t), 0);
    auto* const report = reinterpret_cast<blk_zone_report*>(memory.data());
    report->sector = position / kKernelSector;
    report->nr_zones = static_cast<uint32_t>(count);
    if (const int error = Control(fd_.get(), BLKREPORTZONE, report); error != 0) return error;
    if (report->nr_zones == 0 || report->nr_zones > count) return ENODEV;
    const bool has_capacity = (report->flags & BLK_ZONE_REP_CAPACITY) != 0;
    for (uint32_t i = 0; i < report->nr_zones; ++i) out[i] = ToKernelZone(report->zones[i], has_capacity);
    position = out[report->nr_zones - 1].start + out[report->nr_zones - 1].length;
    out = out.subspan(report->nr_zones);
  }
  return 0;
}

std::string OpenedBlockDevice::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

int OpenedBlockDevice::Manage(ZoneCommand command, uint64_t position, uint64_t length) {
  blk_zone_range range{position / kKernelSector, length / kKernelSector};
  return Control(fd_.get(), RequestOf(command), &range);
}

}  // namespace isozone
