// Recovery: the newest superblock, the checkpoint it names, and the journal's records behind that, applied in order.
//
// Every byte is checked before it is believed: batches by their CRCs and numbers (batch_stream.h), records by the
// decoder, and what they say by MetadataState. Recovery ends with the state of the last whole record or with an error;
// it never leaves out what lies between.
//
// Beside a writer in another process, zones may be given back and written again under the reader. The writer always
// writes a superblock before it gives a zone back, so what was read counts, damage included, only if the newest
// superblock is still the same behind it; else recovery starts over.

#include "fs/recovery.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fs/metadata_codec.h"
#include "fs/metadata_io.h"

namespace isozone {
namespace {

// Beside a writer that rolls its metadata that often while it is read once, something else is wrong.
constexpr int kAttemptsMax = 32;

struct Checkpoint {
  std::vector<Inode> inodes;
  std::shared_ptr<const ZoneGroups> zone_groups;
  CheckpointFooter footer;
  uint64_t next_batch = 0;
};

Result<Checkpoint> ReadCheckpoint(ZonedDevice& device, uint32_t seed, const StreamPlace& place) {
  StreamReader reader(device, StreamKind::kCheckpoint, seed, place);
  Checkpoint checkpoint;
  bool complete = false;
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto record, reader.Next());
    if (!record) break;
    if (complete) return reader.Damage("a record follows the footer");
    if (IsFooter(record->body)) {
      const Result<CheckpointFooter> footer = DecodeFooter(record->body);
      if (!footer.ok()) return reader.Damage(footer.status().message());
      checkpoint.footer = *footer;
      complete = true;
      continue;
    }
    Result<std::vector<MetadataOp>> ops = DecodeRecord(record->body);
    if (!ops.ok()) return reader.Damage(ops.status().message());
    if (ops->size() != 1) return reader.Damage("a record is of several operations");
    if (auto* put = std::get_if<PutInode>(&ops->front())) {
      checkpoint.inodes.push_back(std::move(put->inode));
    } else if (auto* set = std::get_if<SetZoneGroups>(&ops->front()); set != nullptr && !checkpoint.zone_groups) {
      checkpoint.zone_groups = std::move(set->groups);
    } else {
      return reader.Damage("a record is neither an inode nor the zone groups");
    }
  }
  if (!complete || reader.end().torn) return reader.Damage("its footer is missing");
  if (checkpoint.footer.inodes != checkpoint.inodes.size()) {
    return reader.Damage(fmt::format("it holds {} inodes of {}", checkpoint.inodes.size(), checkpoint.footer.inodes));
  }
  checkpoint.next_batch = reader.end().counters.batch;
  return checkpoint;
}

// Applies the records behind the checkpoint.
Result<StreamReader::End> Replay(ZonedDevice& device, uint32_t seed, const StreamPlace& place,
                                 RecoveredMetadata& recovered) {
  StreamReader reader(device, StreamKind::kJournal, seed, place);
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto record, reader.Next());
    if (!record) break;
    if (record->sequence <= recovered.sequence) continue;
    if (record->sequence != recovered.sequence + 1) return reader.Damage("it begins behind the checkpoint's end");
    const Result<std::vector<MetadataOp>> ops = DecodeRecord(record->body);
    if (!ops.ok()) return reader.Damage(ops.status().message());
    const Status applied = recovered.state.Apply(*ops);
    if (!applied.ok()) return reader.Damage(applied.message());
    ++recovered.sequence;
    ++recovered.journal_records;
  }
  const StreamReader::End end = reader.end();
  if (end.counters.sequence != recovered.sequence + 1) {
    return reader.Damage("it ends before the checkpoint's last record");
  }
  if (end.segment + 2 < place.segments.size()) return reader.Damage("more than one zone is named behind its end");
  return end;
}

std::vector<std::pair<ZoneId, ZoneUse>> MetadataZones(const Superblock& superblock) {
  std::vector<std::pair<ZoneId, ZoneUse>> zones;
  for (const ZoneId zone : kSuperblockZones) zones.emplace_back(zone, ZoneUse::kSuperblock);
  for (const Segment& segment : superblock.checkpoint.segments) zones.emplace_back(segment.zone, ZoneUse::kCheckpoint);
  for (const Segment& segment : superblock.journal.segments) zones.emplace_back(segment.zone, ZoneUse::kJournal);
  std::sort(zones.begin(), zones.end());
  zones.erase(std::unique(zones.begin(), zones.end()), zones.end());
  return zones;
}

Result<RecoveredMetadata> ReadMetadata(ZonedDevice& device, const FoundSuperblock& found) {
  const Superblock& superblock = found.superblock;
  const uint32_t seed = ChecksumSeed(superblock.uuid);
  ISOZONE_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint(device, seed, superblock.checkpoint));
  const CheckpointFooter& footer = checkpoint.footer;
  Result<MetadataState> state = MetadataState::Restore(device.geometry(), std::move(checkpoint.inodes), footer.next_id,
                                                       std::move(checkpoint.zone_groups));
  if (!state.ok()) return state.status().WithContext("checkpoint corrupt; the files cannot be found");

  RecoveredMetadata recovered{.state = std::move(state).value(),
                              .label = superblock.label,
                              .uuid = FormatUuid(superblock.uuid),
                              .sequence = footer.sequence,
                              .checkpoint_inodes = footer.inodes,
                              .journal_records = 0,
                              .torn_tail = false,
                              .zones = MetadataZones(superblock),
                              .position = nullptr};
  ISOZONE_ASSIGN_OR_RETURN(const StreamReader::End end, Replay(device, seed, superblock.journal, recovered));
  recovered.torn_tail = end.torn;
  recovered.position = std::make_shared<const RecoveredMetadata::Position>(
      RecoveredMetadata::Position{found, checkpoint.next_batch, end});
  return recovered;
}

// Changes with every superblock that is written, though it may come back to what it was after many.
Result<std::pair<uint64_t, uint64_t>> WritePointers(const ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor first, DescribeZone(device, kSuperblockZones[0]));
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor second, DescribeZone(device, kSuperblockZones[1]));
  return std::pair(first.write_pointer, second.write_pointer);
}

}  // namespace

std::map<ZoneId, uint64_t> NamedZones(const DeviceGeometry& geometry, const MetadataState& state,
                                      std::span<const std::pair<ZoneId, ZoneUse>> metadata_zones) {
  std::map<ZoneId, uint64_t> zones;
  const auto reaches = [&zones](ZoneId zone, uint64_t end) { zones[zone] = std::max(zones[zone], end); };
  for (const auto& [zone, use] : metadata_zones) reaches(zone, UINT64_MAX);
  for (const Inode* inode = state.Next(InodeId()); inode != nullptr; inode = state.Next(inode->id)) {
    for (const FileExtent& extent : inode->extents) {
      const ZoneId zone = geometry.ZoneOf(extent.device_offset);
      reaches(zone, extent.device_offset.value() - geometry.ZoneStart(zone).value() + extent.length);
    }
    for (const LogRegion& region : inode->regions) reaches(region.zone, region.open() ? region.begin : region.end);
  }
  return zones;
}

Result<RecoveredMetadata> RecoverMetadata(ZonedDevice& device) {
  std::optional<std::pair<uint64_t, uint64_t>> failed_at;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    ISOZONE_ASSIGN_OR_RETURN(const auto pointers, WritePointers(device));
    const Result<FoundSuperblock> found = ReadSuperblock(device);
    if (!found.ok()) {
      // Perhaps it was just being replaced; twice, with nothing written in between, it was not.
      if (failed_at == pointers) return found.status();
      failed_at = pointers;
      continue;
    }
    Result<RecoveredMetadata> recovered = ReadMetadata(device, *found);
    const Result<FoundSuperblock> still = ReadSuperblock(device);
    if (still.ok() && still->superblock.sequence == found->superblock.sequence) return recovered;
  }
  return Status::Busy(fmt::format("the metadata of {} changes faster than it can be read: try again", device.name()));
}

}  // namespace isozone
