#include "fs/checkpoint.h"

#include "fs/metadata_io.h"

namespace isozone {

CheckpointWriter::CheckpointWriter(ZonedDevice& device, ZonePool& pool, uint32_t seed, uint64_t next_batch)
    : device_(device),
      pool_(pool),
      builder_(StreamKind::kCheckpoint, seed, device.geometry()),
      counters_{next_batch, 0} {}

void CheckpointWriter::Begin() {
  counters_.sequence = 0;
  queue_ = {};
  place_ = {{}, counters_.batch, 0};
  taken_zones_.clear();
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
  for (const ZoneId zone : taken_zones_) {
    const bool goes_on = lease_.held() && lease_.zone() == zone && lease_.room() > 0;
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
  if (Status written = WriteDurably(device_, lease_, batch.blocks); !written.ok()) {
    write_failed_ = true;
    return written;
  }
  segments.back().end = lease_.write_pointer();
  counters_ = batch.next;
  bytes_written_ += batch.blocks.size();
  return {};
}

}  // namespace isozone
