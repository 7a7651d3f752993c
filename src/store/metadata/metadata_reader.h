// MetadataReader: reads one copy of the metadata: the superblock's zone, behind the superblock, then the zones that the
// batches link.
//
// What a reader finds where the next batch should begin, and what it means:
//   the capacity of the zone                             the copy continues in the linked zone, if one is written
//   the write pointer of a zone that is not full         the end; no zone behind it may be written
//   a valid header whose batch reaches beyond it         torn, the normal end after a power cut: devices keep a prefix,
//                                                        block by block
//   in a full zone, zeros up to its capacity             the end: the controller has finished the zone. A batch whose
//                                                        rest up to there is zeros is torn
//   in a read-only zone, whose write pointer says        the end, if no batch of this copy follows
//   nothing, anything but the expected batch
//   anything else that is not the expected batch         corruption, with its place and what is lost
// A record whose last bytes are missing at the end was never acknowledged and is left out.
//
// A reader that has come to the end may be asked again. It then continues with what a concurrent writer has added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/batch_stream.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/superblock.h"

namespace isozone {

class MetadataReader {
 public:
  MetadataReader(ZonedDevice& device, const Superblock& superblock);

  struct Record {
    BatchKind kind = BatchKind::kJournal;
    uint64_t sequence = 0;            // for a record of a checkpoint: the number of records before it
    std::span<const std::byte> body;  // valid until the next call
  };
  // Returns the next record, and the footer as one, too; empty at the end. kCorruption, with place and effect, or the
  // error of a read.
  Result<std::optional<Record>> Next();

  const Superblock& superblock() const { return superblock_; }
  // Returns the footer once it was read: everything before it is complete.
  const std::optional<CheckpointFooter>& footer() const { return footer_; }

  struct End {
    size_t zone = 0;          // index in zones()
    uint64_t offset = 0;      // bytes from the start of that zone to the end of the last batch
    StreamCounters counters;  // of the batch that would follow
    uint64_t journal_bytes = 0;
    bool torn = false;  // a torn batch or an incomplete record was left out
  };
  // Returns where reading has ended. Next must have returned nothing.
  End end() const;
  // Returns the zones of the copy, in order. The last one may be only linked, and still empty.
  const std::vector<ZoneId>& zones() const { return zones_; }
  // Returns the highest record that was certainly written while this was the only copy; 0: none.
  uint64_t alone_sequence() const { return alone_sequence_; }
  // Returns whether the copy has become one of those that get every record. Before that it may lack what was
  // acknowledged.
  bool joined() const { return joined_; }
  // Returns alone_sequence(), and takes into account batches that can be recognised behind the place at which reading
  // has failed.
  uint64_t AloneBehind();

  // Returns the error for a record that was read, but is not possible.
  Status Damage(std::string_view what) const;

 private:
  std::optional<Record> TakeRecord();
  Status TakeFooter(const Record& record);
  Result<bool> ReadBatch();
  Result<bool> FindBatch();
  Result<bool> GoOn();
  Status Enter(size_t index, uint64_t offset);
  Status LookUpLimit();
  Status CheckNothingBehind() const;
  Result<bool> EndsBefore(uint64_t zeros_from, std::string_view what);
  Result<bool> ReadsAsZeros(uint64_t from);
  Result<bool> HasBatchBehind(uint64_t from);
  Status CheckPlaceInStream(const BatchView& batch) const;
  Status Accept(const BatchView& batch, std::span<const std::byte> payload);
  Status TakeLink(const BatchView& batch);
  // Returns the `length` bytes at `offset`, which must lie below limit_.
  Result<std::span<const std::byte>> Fetch(uint64_t offset, uint64_t length);

  uint64_t pending() const { return stream_.size() - taken_; }
  ZoneId zone() const { return zones_[zone_]; }
  uint64_t capacity() const { return device_.geometry().zone_capacity; }
  bool linked() const { return zone_ + 1 < zones_.size(); }

  ZonedDevice& device_;
  const Superblock superblock_;
  const uint32_t seed_;

  std::vector<ZoneId> zones_;
  bool entered_ = false;  // offset_ and limit_ are set
  size_t zone_ = 0;       // index in zones_
  uint64_t offset_ = 0;   // bytes from the start of the zone to the next batch
  uint64_t limit_ = 0;    // bytes from the start of the zone: no batch is beyond this
  ZoneState state_ = ZoneState::kEmpty;
  bool torn_ = false;

  StreamCounters counters_;  // `sequence` is that of the next record that TakeRecord returns
  std::optional<CheckpointFooter> footer_;
  uint64_t journal_bytes_ = 0;
  uint64_t alone_sequence_ = 0;
  bool joined_ = false;

  std::vector<std::byte> stream_;  // payloads; the first taken_ bytes are done
  size_t taken_ = 0;

  AlignedBuffer buffer_;
  uint64_t buffer_begin_ = 0;  // bytes from the start of the zone: where the content of the buffer begins
  uint64_t buffer_end_ = 0;
};

}  // namespace isozone
