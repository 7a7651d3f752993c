#include "fs/checkpoint.h"

#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/units.h"
#include "fs/metadata_io.h"

namespace isozone {
namespace {

constexpr uint64_t kFillBytes = kMiB;  // at a time

}  // namespace

CheckpointWriter::CheckpointWriter(ZonedDevice& device, ZonePool& pool, uint32_t seed, uint64_t next_batch)
    : device_(device),
      pool_(pool),
      builder_(StreamKind::kCheckpoint, seed, device.geometry()),
      counters_{next_batch, 0} {}

Status CheckpointWriter::Begin(uint64_t room_wanted) {
  counters_.sequence = 0;
  queue_ = {};
  place_ = {{}, counters_.batch, 0};
  taken_zones_.clear();
  return lease_.held() && lease_.room() < room_wanted ? FillZone() : Status::Ok();
}

Status CheckpointWriter::Add(const Inode& inode) {
  queue_.Add([&](std::vector<std::byte>& out) { EncodePutInode(inode, out); });
  return WriteWholeBatches();
}

Status CheckpointWriter::Add(const ZoneGroups& groups) {
  queue_.Add([&](std::vector<std::byte>& out) { EncodeSetZoneGroups(groups, out); });
  return WriteWholeBatches();
}

Status CheckpointWriter::WriteWholeBatches() {
  while (queue_.size() >= builder_.batch_max()) ISOZONE_RETURN_IF_ERROR(WriteBatch());
  return {};
}

Result<StreamPlace> CheckpointWriter::Finish(const CheckpointFooter& footer) {
  queue_.Add([&](std::vector<std::byte>& out) { EncodeFooter(footer, out); });
  while (!queue_.empty()) ISOZONE_RETURN_IF_ERROR(WriteBatch());
  return place_;
}

void CheckpointWriter::Abandon() {
  // The next checkpoint goes on in the zone that is held, if it has room.
  if (lease_.held() && lease_.room() == 0) lease_.Release();
  for (const ZoneId zone : taken_zones_) {
    const bool goes_on = lease_.held() && lease_.zone() == zone;
    if (!goes_on) pool_.ReleaseMetadata(zone);
  }
  taken_zones_.clear();
}

Status CheckpointWriter::WriteBatch() {
  if (!lease_.held() || lease_.room() == 0) {
    ISOZONE_ASSIGN_OR_RETURN(lease_, pool_.AcquireMetadata(ZoneUse::kCheckpoint));
    taken_zones_.push_back(lease_.zone());
  }
  std::vector<Segment>& segments = place_.segments;
  if (segments.empty() || segments.back().zone != lease_.zone()) {
    segments.push_back({lease_.zone(), lease_.write_pointer(), lease_.write_pointer()});
  }
  const BatchBuilder::Batch batch = builder_.Build(queue_, counters_, lease_.room());
  ISOZONE_RETURN_IF_ERROR(Write(batch.blocks));
  segments.back().end = lease_.write_pointer();
  counters_ = batch.next;
  return {};
}

Status CheckpointWriter::FillZone() {
  AlignedBuffer zeros(std::min(lease_.room(), kFillBytes));
  std::fill_n(zeros.data(), zeros.size(), std::byte{0});
  while (lease_.room() > 0) ISOZONE_RETURN_IF_ERROR(Write(zeros.span().first(std::min(lease_.room(), zeros.size()))));
  return {};
}

Status CheckpointWriter::Write(std::span<std::byte> blocks) {
  const Status written = WriteDurably(device_, lease_, blocks);
  write_failed_ = !written.ok();
  if (written.ok()) bytes_written_ += blocks.size();
  return written;
}

}  // namespace isozone
