// The workload whose instructions bench/instruction_cost counts: the file system at memory speed, on one thread.
//
//   isozone_instruction_cost read COUNT POLICY    COUNT random reads of 4 KiB, of a file of 64 MiB
//   isozone_instruction_cost write COUNT POLICY   COUNT MiB written into files of 64 MiB, 64 KiB an append
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "fs/file_system.h"
#include "fs/mount/format_device.h"

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

Status Run(const std::string& what, uint64_t count, const std::string& policy) {
  ISOZONE_ASSIGN_OR_RETURN(const MemoryImage image, EmulatedDevice::CreateInMemory(Geometry()));
  MountOptions options;
  options.policy = policy;
  for (const bool measured : {false, true}) {
    ISOZONE_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
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

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "read" && what != "write") {
    std::fprintf(stderr, "usage: %s read|write COUNT POLICY\n", argv[0]);
    return 1;
  }
  const isozone::Status status = isozone::Run(what, std::strtoull(argv[2], nullptr, 10), argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
