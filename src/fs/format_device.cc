// Formatting: every zone is reset, then a checkpoint of the empty state and an open journal zone come first and the
// superblock last, so that a power cut in between leaves a device that is not formatted.

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "fs/batch_stream.h"
#include "fs/file_system.h"
#include "fs/journal.h"
#include "fs/metadata_codec.h"
#include "fs/metadata_io.h"
#include "fs/superblock.h"
#include "fs/zone_reserves.h"

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

// Resets zones, many at a time: one reset of a large zone takes milliseconds.
class Resetter {
 public:
  explicit Resetter(ZonedDevice& device) : device_(device) {}

  // The first error; all are tried.
  Status Reset(std::span<const ZoneId> zones) {
    std::vector<DeviceRequest> requests(zones.size());
    for (size_t i = 0; i < zones.size(); ++i) {
      WaitBelow(kResetsInFlight);
      requests[i].op = DeviceOp::kReset;
      requests[i].offset = device_.geometry().ZoneStart(zones[i]);
      requests[i].context = this;
      requests[i].done = [](DeviceRequest& request) { static_cast<Resetter*>(request.context)->Done(); };
      device_.Submit(requests[i]);
    }
    WaitBelow(1);
    for (const DeviceRequest& request : requests) ISOZONE_RETURN_IF_ERROR(ToStatus(device_.geometry(), request));
    return {};
  }

 private:
  // Takes its place before the caller submits; with 1, waits for all.
  void WaitBelow(size_t limit) {
    const MutexLock lock(mu_);
    while (in_flight_ >= limit) changed_.Wait(mu_);
    if (limit > 1) ++in_flight_;
  }
  void Done() {
    const MutexLock lock(mu_);
    --in_flight_;
    changed_.Signal();
  }

  ZonedDevice& device_;
  Mutex mu_;
  CondVar changed_;
  size_t in_flight_ ISOZONE_GUARDED_BY(mu_) = 0;
};

Status ResetAll(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneDescriptor> zones, Report(device));
  std::vector<ZoneId> written;
  for (const ZoneDescriptor& zone : zones) {
    if (IsActive(zone.state) || zone.state == ZoneState::kFull) written.push_back(zone.zone);
  }
  return Resetter(device).Reset(written);
}

// The first two empty zones behind the superblocks, after a check that those are empty.
Result<std::pair<ZoneId, ZoneId>> ChooseZones(const ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneDescriptor> zones, Report(device));
  std::vector<ZoneId> empty;
  for (const ZoneDescriptor& zone : zones) {
    if (zone.zone < kFirstOtherZone && zone.state != ZoneState::kEmpty) {
      return Status::IoError(fmt::format("zone {}, which must hold superblocks, is {}: this device cannot be used",
                                         zone.zone.value(), ZoneStateName(zone.state)));
    }
    if (zone.zone >= kFirstOtherZone && zone.state == ZoneState::kEmpty) empty.push_back(zone.zone);
  }
  if (empty.size() < 2) return Status::NoSpace("no two zones of the device can be written");
  return std::pair(empty[0], empty[1]);
}

// Writes a checkpoint of nothing but a root directory to the start of `zone`.
Result<StreamPlace> WriteFirstCheckpoint(ZonedDevice& device, uint32_t seed, ZoneId zone) {
  const MetadataState state(device.geometry());
  RecordQueue queue;
  queue.Add([&](std::vector<std::byte>& out) { EncodePutInode(*state.Find(kRootInode), out); });
  queue.Add([&](std::vector<std::byte>& out) { EncodeFooter({1, 0, state.NextId()}, out); });
  BatchBuilder builder(StreamKind::kCheckpoint, seed, device.geometry());
  const BatchBuilder::Batch batch = builder.Build(queue, {}, device.geometry().zone_capacity);
  const DeviceStatus status = WriteDurably(device, device.geometry().ZoneStart(zone), batch.blocks);
  if (status != DeviceStatus::kSuccess || !queue.empty()) {
    return Status::IoError(
        fmt::format("write of the first checkpoint in zone {} failed: {}", zone.value(), DeviceStatusName(status)));
  }
  return StreamPlace{{{zone, 0, batch.blocks.size()}}, 0, 0};
}

}  // namespace

Status InitialiseMetadata(ZonedDevice& device, std::string_view label) {
  const DeviceGeometry& geometry = device.geometry();
  ISOZONE_ASSIGN_OR_RETURN(const auto zones, ChooseZones(device));
  Superblock superblock;
  superblock.uuid = RandomUuid();
  superblock.label = label;
  superblock.block_size = geometry.block_size;
  superblock.zone_count = geometry.zone_count;
  superblock.zone_size = geometry.zone_size;
  superblock.zone_capacity = geometry.zone_capacity;
  ISOZONE_ASSIGN_OR_RETURN(superblock.checkpoint,
                           WriteFirstCheckpoint(device, ChecksumSeed(superblock.uuid), zones.first));
  superblock.journal = {{{zones.second, 0, Segment::kOpen}}, 0, 1};
  return SuperblockWriter(device, kSuperblockZones[0], 0).Write(superblock);
}

Status FormatDevice(ZonedDevice& device, const FormatOptions& options) {
  if (options.label.size() > kLabelMax || options.label.find('\0') != std::string::npos) {
    return Status::InvalidArgument(fmt::format("the label '{}' is longer than {} bytes", options.label, kLabelMax));
  }
  if (device.read_only()) return Status::ReadOnly(fmt::format("{} is opened read-only", device.name()));
  ISOZONE_RETURN_IF_ERROR(CheckDeviceFits(device.geometry()));
  if (!options.force) ISOZONE_RETURN_IF_ERROR(CheckNotInUse(device));
  ISOZONE_RETURN_IF_ERROR(ResetAll(device));
  return InitialiseMetadata(device, options.label);
}

}  // namespace isozone
