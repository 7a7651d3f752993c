// Writes the seed inputs of the journal fuzzer, in the format of this build, and fails where one is not what it should
// be. Usage: make_journal_corpus DIRECTORY, which is made.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "device/emulated/emulated_device.h"
#include "journal_input.h"
#include "store/file_system.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/recovery.h"
#include "store/mount/format_device.h"

namespace isozone {
namespace {

std::vector<MetadataOp> EveryOperation() {
  Inode directory;
  directory.id = InodeId(2);
  directory.is_directory = true;
  directory.links = {{kRootInode, "d"}};
  Inode file;
  file.id = InodeId(3);
  file.links = {{InodeId(2), "f"}};
  Inode log;
  log.id = InodeId(4);
  log.kind = FileKind::kLog;
  log.links = {{kRootInode, "l"}};
  const FileExtent extent{0, DeviceOffset(5 * 8192), 600};
  constexpr uint64_t kUnit = ExtentList::kUnitMin;
  ExtentList stripe;  // two units in each of two zones
  for (uint64_t i = 0; i < 4; ++i) {
    stripe.push_back({600 + i * kUnit, DeviceOffset((9 + i % 2) * 8192 + i / 2 * kUnit), kUnit});
  }
  ZoneGroups groups;
  groups.group_of_zone.assign(FuzzGeometry().zone_count, 1);
  groups.group_of_zone[0] = 0;
  groups.group_of_zone[3] = ZoneGroups::kUnknown;
  groups.confidence_percent.assign(FuzzGeometry().zone_count, 98);
  groups.channel_of_group = {0, 0};
  groups.zone_bandwidth = 96'000'000;
  InodeDetails details;
  details.mode = 0600;
  details.modified = {6, 7};
  details.xattrs = {{"user.a", "value"}};
  return {PutInode{directory},
          PutInode{file},
          PutInode{log},
          AppendExtents{file.id, 0, {extent}, 1},
          CutFile{file.id, 0, 2},
          AppendExtents{file.id, 0, {extent}, 2},
          MoveExtents{file.id, {{extent.device_offset, DeviceOffset(7 * 8192), extent.length}}},
          AppendExtents{file.id, 1, stripe, 3},
          SetZoneHeats{{{ZoneId(7), ZoneHeat::kC1H}}},
          SetLogRegion{log.id, 0, {ZoneId(6), 0, LogRegion::kOpen, 0}, 3},
          SetLogRegions{log.id, {{ZoneId(6), 0, 512, 100}}, 4},
          SetAttributes{file.id, Lifetime::kLong, 5},
          SetZoneGroups{std::make_shared<ZoneGroups>(groups)},
          PlaceExtents{file.id, {{10, DeviceOffset(6 * 8192 + 4096), 20}}, 6},
          SetDetails{file.id, std::make_shared<const InodeDetails>(details)},
          LogToData{log.id, {{0, DeviceOffset(6 * 8192 + 40), 100}, {100, FileExtent::kHole, 1000}}, 7},
          BeginMount{8},
          AddLink{file.id, {kRootInode, "g"}},
          RemoveLink{file.id, {InodeId(2), "f"}},
          RemoveLink{directory.id, {kRootInode, "d"}},
          RemoveInode{directory.id}};
}

// The device is what fuzzing should begin with: one that can be recovered, with so many records in its journal.
Status CheckRecovers(FrozenDevice& device, uint64_t records) {
  ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata recovered, RecoverMetadata(device));
  if (recovered.journal_records == records) return {};
  return Status::Corruption("a seed has " + std::to_string(recovered.journal_records) + " records");
}

void Write(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Status Make(const std::string& directory) {
  std::filesystem::create_directories(directory);
  ISOZONE_ASSIGN_OR_RETURN(const MemoryImage image, EmulatedDevice::CreateInMemory(FuzzGeometry()));
  ISOZONE_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
  ISOZONE_RETURN_IF_ERROR(FormatDevice(*device, {"seed", false}));
  FrozenDevice frozen(*device);
  ISOZONE_RETURN_IF_ERROR(CheckRecovers(frozen, 0));
  Write(directory + "/fresh", EncodeInput(kRepair, frozen));

  ISOZONE_ASSIGN_OR_RETURN(const MetadataReading reading, ReadMetadata(frozen));
  const FoundCopy& copy = reading.metadata.position->copies.front();
  RecordQueue queue;
  const std::vector<MetadataOp> ops = EveryOperation();
  constexpr size_t kRecords = 40;
  for (size_t i = 0; i < kRecords; ++i) {
    queue.Add([&](std::vector<std::byte>& out) {
      EncodeRecord(i == 0 ? ops : std::vector<MetadataOp>{SetAttributes{InodeId(4), Lifetime::kShort, i}}, out);
    });
  }
  BatchBuilder builder(ChecksumSeed(copy.superblock.uuid, copy.superblock.generation), frozen.geometry());
  StreamCounters counters = copy.end.counters;
  std::vector<std::byte>& journal = frozen.zone(copy.superblock.zone);
  while (!queue.empty()) {
    const BatchBuilder::Batch batch =
        builder.Build(queue, counters, BatchBuilder::Info(), 3 * frozen.geometry().block_size);
    journal.insert(journal.end(), batch.blocks.begin(), batch.blocks.end());
    counters = batch.next;
  }
  ISOZONE_RETURN_IF_ERROR(CheckRecovers(frozen, kRecords));
  Write(directory + "/journal", EncodeInput(kRepair, frozen));
  Write(directory + "/journal-as-it-is", EncodeInput(0, frozen));
  journal.resize(journal.size() - frozen.geometry().block_size);
  Write(directory + "/torn", EncodeInput(kRepair, frozen));

  std::vector<std::byte> body;
  EncodeRecord(ops, body);
  ISOZONE_RETURN_IF_ERROR(DecodeRecord(body).status());
  std::vector<uint8_t> record = {kRecord};
  for (const std::byte b : body) record.push_back(static_cast<uint8_t>(b));
  Write(directory + "/record", record);
  return {};
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const isozone::Status status = isozone::Make(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
