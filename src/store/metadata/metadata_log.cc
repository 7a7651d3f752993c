#include "store/metadata/metadata_log.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/log.h"

namespace isozone {
namespace {

uint32_t ZonesFor(const DeviceGeometry& geometry, uint64_t bytes) {
  return static_cast<uint32_t>((SuperblockSlot(geometry) + bytes + geometry.zone_capacity - 1) /
                               geometry.zone_capacity);
}

uint64_t RestBytes(const DeviceGeometry& geometry, uint64_t checkpoint_bytes, MetadataRest rest) {
  const uint64_t block = geometry.block_size;
  const uint64_t whole = std::max(checkpoint_bytes / 2, geometry.zone_capacity / 8);
  switch (rest) {
    case MetadataRest::kWhole:
      return std::max(4 * block, RoundUp(whole, block));
    case MetadataRest::kMost:
      return (RestBytes(geometry, checkpoint_bytes, MetadataRest::kWhole) +
              RestBytes(geometry, checkpoint_bytes, MetadataRest::kHalf)) /
             2;
    case MetadataRest::kHalf:
      return std::max(3 * block, RoundUp(whole / 2, block));
    case MetadataRest::kLeast:
      break;
  }
  return 2 * block;
}

}  // namespace

uint32_t CopyZones(const DeviceGeometry& geometry, uint64_t checkpoint_bytes, MetadataRest rest) {
  return ZonesFor(geometry, BytesInBatches(geometry, checkpoint_bytes) + RestBytes(geometry, checkpoint_bytes, rest));
}

MetadataLog::MetadataLog(ZonedDevice& device, ZonePool& pool, const Superblock& superblock)
    : device_(device),
      pool_(pool),
      superblock_(superblock),
      builder_(ChecksumSeed(superblock.uuid, superblock.generation), device.geometry()) {}

Result<std::unique_ptr<MetadataLog>> MetadataLog::Resume(ZonedDevice& device, ZonePool& pool, const FoundCopy& found,
                                                         bool up_to_date) {
  auto log = std::make_unique<MetadataLog>(device, pool, found.superblock);
  log->zones_ = found.zones;
  log->zone_ = found.end.zone;
  log->counters_ = found.end.counters;
  log->durable_sequence_ = found.sequence;
  log->journal_bytes_ = found.end.journal_bytes;
  const ZoneId last = log->zones_[log->zone_];
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(device, last));
  const bool full = found.end.offset == zone.capacity;
  const bool fits = IsWritable(zone.state) && zone.write_pointer == found.end.offset;
  bool next_fits = true;
  if (log->linked()) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor next, DescribeZone(device, *log->next_zone()));
    next_fits = next.state == ZoneState::kEmpty;
  }
  if (!up_to_date || found.end.torn || !(full || fits) || !next_fits) {
    log->zone_ = log->zones_.size() - 1;  // nothing can be written behind what was found
    return log;
  }
  if (full) return log;
  ISOZONE_ASSIGN_OR_RETURN(log->lease_, pool.Reopen(last));
  log->room_here_ = log->lease_.room();
  return log;
}

Status MetadataLog::Begin(uint32_t zones, std::vector<ZoneId> apart_from) {
  apart_from_ = std::move(apart_from);
  zones_wanted_ = zones;
  ISOZONE_ASSIGN_OR_RETURN(lease_, pool_.AcquireForMetadata(apart_from_));
  superblock_.zone = lease_.zone();
  zones_.push_back(lease_.zone());
  room_here_ = lease_.room();
  ISOZONE_RETURN_IF_ERROR(EnterZone());
  AlignedBuffer slot(SuperblockSlot(device_.geometry()));
  EncodeSuperblock(superblock_, slot.span());
  room_here_ -= slot.size();
  return Write(slot.span());
}

// Sets aside the zone behind the one that is held, if that is not the last one of the copy.
Status MetadataLog::EnterZone() {
  if (zones_.size() == zones_wanted_) return {};
  ISOZONE_ASSIGN_OR_RETURN(const ZoneId next, pool_.SetAside(apart_from_));
  zones_.push_back(next);
  return {};
}

Status MetadataLog::WriteCheckpointBatch() {
  if (room_here_ == 0) {
    assert(linked());
    if (!linked()) return Status::NoSpace("a checkpoint became larger than it was");
    lease_.Release();
    ++zone_;
    ISOZONE_ASSIGN_OR_RETURN(lease_, pool_.Reopen(zones_[zone_]));
    room_here_ = lease_.room();
    ISOZONE_RETURN_IF_ERROR(EnterZone());
  }
  const BatchBuilder::Info info{BatchKind::kCheckpoint, 1, next_zone()};
  const BatchBuilder::Batch batch = builder_.Build(checkpoint_, counters_, info, room_here_);
  room_here_ -= batch.blocks.size();
  ISOZONE_RETURN_IF_ERROR(Write(batch.blocks));
  counters_ = batch.next;
  return {};
}

Status MetadataLog::Finish(const CheckpointFooter& footer) {
  ISOZONE_RETURN_IF_ERROR(Add([&](std::vector<std::byte>& out) { EncodeFooter(footer, out); }));
  while (!checkpoint_.empty()) ISOZONE_RETURN_IF_ERROR(WriteCheckpointBatch());
  counters_.sequence = footer.sequence + 1;
  durable_sequence_ = footer.sequence;
  return {};
}

Status MetadataLog::Write(std::span<std::byte> blocks) {
  batch_.blocks = blocks;
  {
    Latch written;
    ISOZONE_RETURN_IF_ERROR(Start(written));
  }
  return EndWrite();
}

uint64_t MetadataLog::room() const { return room_here_ + (linked() ? device_.geometry().zone_capacity : 0); }

void MetadataLog::Build(uint32_t copies) {
  assert(room() > 0);
  // The last batch in a full zone has named the zone in which the copy goes on.
  if (room_here_ == 0) {
    lease_.Release();
    ++zone_;
    room_here_ = device_.geometry().zone_capacity;
  }
  const BatchBuilder::Info info{BatchKind::kJournal, static_cast<uint8_t>(copies), next_zone()};
  batch_ = builder_.Build(journal_, counters_, info, room_here_);
  room_here_ -= batch_.blocks.size();
}

Status MetadataLog::Start(Latch& written) {
  if (!lease_.held()) {
    ISOZONE_ASSIGN_OR_RETURN(lease_, pool_.Reopen(zones_[zone_]));
  }
  if (!lease_.BeginWrite())
    return Status::IoError(fmt::format("metadata zone {} was taken away", zones_[zone_].value()));
  request_ = {};
  request_.op = DeviceOp::kWrite;
  request_.fua = true;
  request_.offset = lease_.next();
  request_.data = batch_.blocks.data();
  request_.length = batch_.blocks.size();
  written.Expect(request_);
  device_.Submit(request_);
  return {};
}

Status MetadataLog::EndWrite() {
  const uint64_t offset = lease_.write_pointer();
  const uint64_t written = request_.status == DeviceStatus::kSuccess ? request_.length : 0;
  lease_.CompleteWrite(written, request_.status);
  lease_.Settle(written, request_.status);
  bytes_written_ += written;
  if (out_of_room()) return ToStatus(device_.geometry(), request_);
  if (written > 0) return {};
  return Status::IoError(fmt::format("write of {} bytes of metadata in zone {} at {} failed: {}", request_.length,
                                     zones_[zone_].value(), offset, DeviceStatusName(request_.status)));
}

void MetadataLog::Erase() {
  const Status erased = ManageZone(device_, DeviceOp::kReset, zones_.front());
  if (erased.ok()) return;
  Log().warn("a copy of the metadata could not be erased: {}", erased.message());
  for (const ZoneId zone : zones_) {
    const auto now = DescribeZone(device_, zone);
    if (!now.ok() || !IsActive(now->state)) continue;
    const Status finished = ManageZone(device_, DeviceOp::kFinish, zone);
    if (!finished.ok()) Log().warn("a copy of the metadata could not be finished: {}", finished.message());
  }
}

Status MetadataLog::End() {
  ISOZONE_RETURN_IF_ERROR(EndWrite());
  counters_ = batch_.next;
  durable_sequence_ = batch_.next.sequence - (batch_.cuts_record ? 2 : 1);
  journal_bytes_ += request_.length;
  return {};
}

}  // namespace isozone
