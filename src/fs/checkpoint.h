// Writes checkpoints: one after another into one zone until that is full, then into the next. What is written counts
// only once a superblock names it. One that reaches over two zones keeps the one before the last from being given back;
// where zones are short it begins in a zone of its own.
//
// Thread safety: one thread at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "fs/batch_stream.h"
#include "fs/metadata_codec.h"
#include "fs/zone_pool.h"

namespace isozone {

class CheckpointWriter {
 public:
  CheckpointWriter(ZonedDevice& device, ZonePool& pool, uint32_t seed, uint64_t next_batch);
  // Goes on in the zone of the checkpoint before, where that is not full.
  void Resume(ZoneLease lease) { lease_ = std::move(lease); }

  // One checkpoint: Begin, any number of Add, then Finish or Abandon. What is left of a zone, where that is less than
  // `room_wanted` bytes, is filled with zeros first.
  Status Begin(uint64_t room_wanted);
  Status Add(const Inode& inode);
  Status Add(const ZoneGroups& groups);
  // All of it is durable when this returns.
  Result<StreamPlace> Finish(const CheckpointFooter& footer);
  // Gives back the zones that only the unfinished checkpoint uses.
  void Abandon();

  // A write has failed, and not just the search for a zone: nothing more may be written.
  bool write_failed() const { return write_failed_; }
  uint64_t bytes_written() const { return bytes_written_; }  // by all checkpoints

 private:
  Status WriteWholeBatches();
  Status WriteBatch();
  Status FillZone();
  Status Write(std::span<std::byte> blocks);

  ZonedDevice& device_;
  ZonePool& pool_;
  BatchBuilder builder_;
  ZoneLease lease_;
  StreamCounters counters_;
  RecordQueue queue_;
  StreamPlace place_;                // of the checkpoint that is being written
  std::vector<ZoneId> taken_zones_;  // for it
  bool write_failed_ = false;
  uint64_t bytes_written_ = 0;
};

}  // namespace isozone
