#include "store/mount/format_device.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/latch.h"
#include "store/metadata/batch_stream.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/superblock.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

constexpr size_t kLabelMax = 63;
constexpr size_t kResetsInFlight = 64;

Status CheckNotInUse(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  switch (content) {
    case DeviceContent::kEmpty:
      return {};
    case DeviceContent::kIsozone:
      return Status::AlreadyExists(
          fmt::format("{} carries an Isozone file system already: use --force to erase it", device.name()));
    case DeviceContent::kZenFs:
      return Status::AlreadyExists(fmt::format("{} is formatted by ZenFS: use --force to erase it", device.name()));
    case DeviceContent::kUnknown:
      break;
  }
  return Status::AlreadyExists(
      fmt::format("{} holds data that is not Isozone's: use --force to erase it", device.name()));
}

Result<std::vector<ZoneDescriptor>> Report(const ZonedDevice& device) {
  std::vector<ZoneDescriptor> zones(device.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), zones));
  return zones;
}

Status ResetAll(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneDescriptor> zones, Report(device));
  std::vector<ZoneId> written;
  for (const ZoneDescriptor& zone : zones) {
    if (IsActive(zone.state) || zone.state == ZoneState::kFull) written.push_back(zone.zone);
  }
  // Many resets are in flight at a time, since one reset of a large zone takes milliseconds.
  std::vector<DeviceRequest> requests(written.size());
  {
    Latch resets;
    for (size_t i = 0; i < written.size(); ++i) {
      requests[i].op = DeviceOp::kReset;
      requests[i].offset = device.geometry().ZoneStart(written[i]);
      resets.WaitForAtMost(kResetsInFlight - 1);
      resets.Expect(requests[i]);
      device.Submit(requests[i]);
    }
  }
  for (const DeviceRequest& request : requests) ISOZONE_RETURN_IF_ERROR(ToStatus(device.geometry(), request));
  return {};
}

// Returns the first empty zones, one for each copy.
Result<std::vector<ZoneId>> ChooseZones(const ZonedDevice& device, uint32_t copies) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneDescriptor> zones, Report(device));
  std::vector<ZoneId> empty;
  for (const ZoneDescriptor& zone : zones) {
    if (zone.state == ZoneState::kEmpty && empty.size() < copies) empty.push_back(zone.zone);
  }
  if (empty.size() < copies) return Status::NoSpace(fmt::format("no {} zones of the device can be written", copies));
  return empty;
}

// Returns a generation above those of all file systems that were here before, so that what cannot be reset never counts
// again.
Result<uint64_t> NewGeneration(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FoundSuperblock> found, FindSuperblocks(device, /*everywhere=*/true));
  uint64_t generation = 1;
  for (const FoundSuperblock& old : found) {
    if (old.superblock.ok()) generation = std::max(generation, old.superblock->generation + 1);
  }
  return generation;
}

// Writes a copy that holds nothing but a root directory.
Status WriteFirstCopy(ZonedDevice& device, const Superblock& superblock) {
  const DeviceGeometry& geometry = device.geometry();
  const uint64_t start = geometry.ZoneStart(superblock.zone).value();
  AlignedBuffer slot(SuperblockSlot(geometry));
  EncodeSuperblock(superblock, slot.span());
  const MetadataState state(geometry);
  RecordQueue queue;
  queue.Add([&](std::vector<std::byte>& out) { EncodePutInode(*state.Find(kRootInode), out); });
  queue.Add([&](std::vector<std::byte>& out) { EncodeFooter({1, 0, state.NextId()}, out); });
  BatchBuilder builder(ChecksumSeed(superblock.uuid, superblock.generation), geometry);
  const auto copies = static_cast<uint8_t>(superblock.copies);
  uint64_t end = start + slot.size();
  DeviceStatus status = WriteDurably(device, DeviceOffset(start), slot.span());
  StreamCounters counters;
  // The batch of the journal is empty: it says that this is one of the copies.
  for (const BatchKind kind : {BatchKind::kCheckpoint, BatchKind::kJournal}) {
    if (status != DeviceStatus::kSuccess) break;
    const BatchBuilder::Info info{kind, copies, {}};
    const BatchBuilder::Batch batch = builder.Build(queue, counters, info, start + geometry.zone_capacity - end);
    status = WriteDurably(device, DeviceOffset(end), batch.blocks);
    end += batch.blocks.size();
    counters = {batch.next.batch, 1};
  }
  if (status != DeviceStatus::kSuccess || !queue.empty()) {
    return Status::IoError(fmt::format("write of the first metadata in zone {} failed: {}", superblock.zone.value(),
                                       DeviceStatusName(status)));
  }
  return {};
}

// Writes the first copies. All zones of the device that can be reset are empty.
Status InitialiseMetadata(ZonedDevice& device, std::string_view label, uint32_t copies) {
  const DeviceGeometry& geometry = device.geometry();
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneId> zones, ChooseZones(device, copies));
  Superblock superblock;
  ISOZONE_ASSIGN_OR_RETURN(superblock.generation, NewGeneration(device));
  superblock.uuid = RandomUuid();
  superblock.label = label;
  superblock.copies = copies;
  superblock.block_size = geometry.block_size;
  superblock.zone_count = geometry.zone_count;
  superblock.zone_size = geometry.zone_size;
  superblock.zone_capacity = geometry.zone_capacity;
  for (const ZoneId zone : zones) {
    superblock.zone = zone;
    ISOZONE_RETURN_IF_ERROR(WriteFirstCopy(device, superblock));
    ++superblock.generation;
  }
  return {};
}

}  // namespace

Status FormatDevice(ZonedDevice& device, const FormatOptions& options) {
  if (options.label.size() > kLabelMax || options.label.find('\0') != std::string::npos) {
    return Status::InvalidArgument(fmt::format("the label '{}' is longer than {} bytes", options.label, kLabelMax));
  }
  if (options.metadata_copies == 0 || options.metadata_copies > kMetadataCopiesMax) {
    return Status::InvalidArgument(
        fmt::format("{} copies of the metadata: there can be 1 to {}", options.metadata_copies, kMetadataCopiesMax));
  }
  if (device.read_only()) return Status::ReadOnly(fmt::format("{} is opened read-only", device.name()));
  ISOZONE_RETURN_IF_ERROR(CheckDeviceFits(device.geometry()));
  if (!options.force) ISOZONE_RETURN_IF_ERROR(CheckNotInUse(device));
  ISOZONE_RETURN_IF_ERROR(ResetAll(device));
  return InitialiseMetadata(device, options.label, options.metadata_copies);
}

}  // namespace isozone
