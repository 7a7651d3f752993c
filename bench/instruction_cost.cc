// The workload whose instructions bench/instruction_cost counts: the file system at memory speed, on one thread.
//
//   isozone_instruction_cost read COUNT POLICY DEVICE    COUNT random reads of 4 KiB, of a file of 64 MiB
//   isozone_instruction_cost write COUNT POLICY DEVICE   COUNT MiB written into files of 64 MiB, 64 KiB an append
//   isozone_instruction_cost copy COUNT POLICY DEVICE    COUNT times what the emulated device copies for such a read
//
// DEVICE: `emulated`, or `linux`, which is how a zoned block device is reached (LinuxDevice, with the system calls that
// it makes), on a file in memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "device/linux/linux_device.h"
#include "device/linux/transfers.h"
#include "store/file_system.h"
#include "store/mount/format_device.h"

namespace isozone {
namespace {

constexpr uint64_t kFileSize = 64 * kMiB;
constexpr uint32_t kZones = 64;
constexpr uint16_t kGroups = 32;

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.zone_count = kZones;
  geometry.zone_size = geometry.zone_capacity = 72 * kMiB;
  geometry.max_active_zones = geometry.max_open_zones = 384;
  geometry.optimal_write = 192 * kKiB;
  return geometry;
}

ZoneGroups RoundRobin() {
  ZoneGroups groups;
  groups.channel_of_group.assign(kGroups, 0);
  for (uint32_t zone = 0; zone < kZones; ++zone) {
    groups.group_of_zone.push_back(static_cast<uint16_t>(zone % kGroups));
    groups.confidence_percent.push_back(100);
  }
  return groups;
}

// The zones of a device that lies in a file. A write ends at the write pointer of its zone.
struct ZonedFile {
  FileDescriptor fd{::memfd_create("zoned", MFD_CLOEXEC)};
  std::vector<KernelZone> zones = EmptyZones();

  static std::vector<KernelZone> EmptyZones() {
    std::vector<KernelZone> zones(kZones);
    for (uint32_t i = 0; i < kZones; ++i) {
      const uint64_t size = Geometry().zone_size;
      zones[i] = {i * size, size, size, 0, BLK_ZONE_TYPE_SEQWRITE_REQ, BLK_ZONE_COND_EMPTY};
    }
    return zones;
  }
};

// What the kernel does for a block device, done for the file.
class FileKernel final : public BlockKernel {
 public:
  explicit FileKernel(ZonedFile& file, std::unique_ptr<Transfers> transfers)
      : file_(file), transfers_(std::move(transfers)) {}

  void Start(KernelTransfer& transfer) override {
    transfer.file = file_.fd.get();
    if (transfer.kind == KernelTransfer::Kind::kWrite) {
      KernelZone& zone = file_.zones[transfer.position / Geometry().zone_size];
      zone.write_pointer = transfer.position + transfer.length - zone.start;
      zone.condition = zone.write_pointer == zone.capacity ? BLK_ZONE_COND_FULL : BLK_ZONE_COND_IMP_OPEN;
    }
    transfers_->Start(transfer);
  }
  int ReportZones(uint64_t position, std::span<KernelZone> out) const override {
    std::copy_n(file_.zones.begin() + static_cast<std::ptrdiff_t>(position / Geometry().zone_size), out.size(),
                out.begin());
    return 0;
  }
  int Manage(ZoneCommand command, uint64_t position, uint64_t length) override {
    for (uint64_t at = position; at < position + length; at += Geometry().zone_size) {
      KernelZone& zone = file_.zones[at / Geometry().zone_size];
      if (command == ZoneCommand::kReset) zone.write_pointer = 0;
      if (command == ZoneCommand::kReset) zone.condition = BLK_ZONE_COND_EMPTY;
      if (command == ZoneCommand::kFinish) zone.condition = BLK_ZONE_COND_FULL;
    }
    return 0;
  }
  std::string path() const override { return ""; }
  bool may_err_about_pointers() const override { return false; }
  std::string transfer_path() const override { return transfers_->name(); }

 private:
  ZonedFile& file_;
  const std::unique_ptr<Transfers> transfers_;
};

Result<std::unique_ptr<ZonedDevice>> OpenLinux(ZonedFile& file) {
  QueueFacts facts;
  facts.model = "host-managed";
  facts.zone_size = Geometry().zone_size;
  facts.size = kZones * facts.zone_size;
  facts.write_granularity = Geometry().block_size;
  facts.max_transfer = Geometry().optimal_write;
  facts.max_open_zones = facts.max_active_zones = Geometry().max_open_zones;
  facts.durable = DurableWrites::kForced;
  // By threads: valgrind does not run the others while one waits for io_uring. A read that is waited for uses neither.
  ISOZONE_ASSIGN_OR_RETURN(auto transfers, Transfers::Make(TransferPath::kThreads, file.fd.get()));
  ISOZONE_ASSIGN_OR_RETURN(auto device,
                           LinuxDevice::Create("dev:memory", OpenMode::kReadWrite,
                                               std::make_unique<FileKernel>(file, std::move(transfers)), facts));
  return std::unique_ptr<ZonedDevice>(std::move(device));
}

Status WriteFile(FileSystem& fs, uint64_t size) {
  const std::vector<std::byte> piece(64 * kKiB, std::byte{1});
  ISOZONE_ASSIGN_OR_RETURN(auto writer, fs.Create("/f", {.io_class = IoClass::kFlush}));
  for (uint64_t at = 0; at < size; at += piece.size()) ISOZONE_RETURN_IF_ERROR(writer->Append(piece));
  ISOZONE_RETURN_IF_ERROR(writer->Sync());
  return writer->Close();
}

Status Reads(FileSystem& fs, uint64_t count) {
  ISOZONE_RETURN_IF_ERROR(WriteFile(fs, kFileSize));
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs.OpenForRead("/f"));
  AlignedBuffer block(4096);
  Random random(1);
  for (uint64_t i = 0; i < count; ++i) {
    ISOZONE_RETURN_IF_ERROR(
        reader->Read(random.Below(kFileSize / 4096) * 4096, block.span(), IoClass::kUserRead).status());
  }
  return Status::Ok();
}

Status Writes(FileSystem& fs, uint64_t mebibytes) {
  for (uint64_t left = mebibytes * kMiB; left > 0; left -= std::min(left, kFileSize)) {
    ISOZONE_RETURN_IF_ERROR(WriteFile(fs, std::min(left, kFileSize)));
  }
  return Status::Ok();
}

void Copies(uint64_t count) {
  AlignedBuffer from(kFileSize);
  AlignedBuffer to(4096);
  Random random(1);
  std::memset(from.data(), 1, from.size());
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* const block = from.data() + random.Below(kFileSize / 4096) * 4096;
    volatile size_t length = 4096;  // as in the device, where the compiler does not know it
    std::memcpy(to.data(), block, length);
  }
}

using Opener = std::function<Result<std::unique_ptr<ZonedDevice>>()>;

Status Run(const std::string& what, uint64_t count, const std::string& policy, const Opener& open) {
  MountOptions options;
  options.policy = policy;
  for (const bool measured : {false, true}) {
    ISOZONE_ASSIGN_OR_RETURN(auto device, open());
    if (!measured) ISOZONE_RETURN_IF_ERROR(FormatDevice(*device, {}));
    ISOZONE_ASSIGN_OR_RETURN(const auto fs, FileSystem::Mount(std::move(device), options));
    if (!measured) {
      ISOZONE_RETURN_IF_ERROR(fs->groups().Set(RoundRobin()));
    } else {
      ISOZONE_RETURN_IF_ERROR(what == "read" ? Reads(*fs, count) : Writes(*fs, count));
    }
    ISOZONE_RETURN_IF_ERROR(fs->Unmount());
  }
  return Status::Ok();
}

Status RunOn(const std::string& device, const std::string& what, uint64_t count, const std::string& policy) {
  if (device == "linux") {
    ZonedFile file;
    if (::ftruncate(file.fd.get(), static_cast<off_t>(kZones * Geometry().zone_size)) != 0) {
      return Status::FromErrno(errno, "cannot make a file in memory");
    }
    return Run(what, count, policy, [&] { return OpenLinux(file); });
  }
  ISOZONE_ASSIGN_OR_RETURN(const MemoryImage image, EmulatedDevice::CreateInMemory(Geometry()));
  return Run(what, count, policy, [&]() -> Result<std::unique_ptr<ZonedDevice>> {
    ISOZONE_ASSIGN_OR_RETURN(auto opened, EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
    return std::unique_ptr<ZonedDevice>(std::move(opened));
  });
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  const std::string what = argc == 5 ? argv[1] : "";
  if (what != "read" && what != "write" && what != "copy") {
    std::fprintf(stderr, "usage: %s read|write|copy COUNT POLICY emulated|linux\n", argv[0]);
    return 1;
  }
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  isozone::Status status;
  if (what == "copy") {
    isozone::Copies(count);
  } else {
    status = isozone::RunOn(argv[4], what, count, argv[3]);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
