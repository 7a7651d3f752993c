// Streams of records on the device: the journal and the checkpoint are one each.
//
//   records    length (4 bytes) and body, one behind the other: one long sequence of bytes
//   batches    that sequence, cut anywhere: header with two CRCs, payload, zeros to a whole block; one durable device
//              write each. A batch is cut short where its zone ends, so zones are filled to the last block (and are
//              then no longer active), and a record may be longer than a zone.
//   segments   the pieces of zones that the batches lie in, in order; the superblock lists them
//
// Each batch carries its number and the sequence of the first record that begins in it, both without gaps, so that no
// batch can be lost, repeated or exchanged unnoticed.
//
// What a reader meets where the next batch should begin:
//   the end of a sealed segment, or of a full zone     goes on in the next segment
//   the write pointer of the zone (open segment)       the end; later segments must be unwritten
//   a valid header whose batch reaches beyond it       torn, the normal end after a power cut: devices keep a prefix,
//                                                      block by block
//   anything else that is not the expected batch       corruption, with its place and what is lost
// A record whose last bytes are missing at the end was never acknowledged and is dropped. A writer that goes on after
// such an end opens a new segment; its first batch then has no lead.
//
// No length is believed, or memory taken by it, before the CRC that covers it has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "fs/format.h"
#include "fs/superblock.h"

namespace isozone {

// What the next batch of a stream carries.
struct StreamCounters {
  uint64_t batch = 0;
  uint64_t sequence = 0;
};

// Records that wait to be cut into batches.
class RecordQueue {
 public:
  // `encode(std::vector<std::byte>&)` appends the body of one record.
  template <typename Encode>
  void Add(Encode encode) {
    Compact();
    const size_t begin = bytes_.size();
    begins_.push_back(base_ + begin);
    bytes_.resize(begin + kRecordPrefix);
    encode(bytes_);
    const auto length = static_cast<uint32_t>(bytes_.size() - begin - kRecordPrefix);
    std::memcpy(bytes_.data() + begin, &length, sizeof(length));
  }

  // Leaves out the rest of a record that was taken in part, and the first `records` of the others.
  void Drop(uint64_t records);

  uint64_t size() const { return base_ + bytes_.size() - front_; }  // bytes
  bool empty() const { return size() == 0; }

 private:
  friend class BatchBuilder;
  void Compact();

  // Positions count from the first byte ever added.
  uint64_t base_ = 0;   // of bytes_[0]
  uint64_t front_ = 0;  // of the first byte that was not taken
  std::vector<std::byte> bytes_;
  std::deque<uint64_t> begins_;  // of the records that begin at or behind front_
};

// Makes batches of one stream.
class BatchBuilder {
 public:
  BatchBuilder(StreamKind kind, uint32_t seed, const DeviceGeometry& geometry);

  struct Batch {
    std::span<std::byte> blocks;  // to be written; valid until the next Build
    StreamCounters next;          // of the batch behind it
    uint32_t records = 0;         // that begin in it
    bool cuts_record = false;     // its last record goes on in the next batch
  };
  // Takes from the front of `queue`, which is not empty, what goes into one batch of at most `room` bytes; `room` is at
  // least one block.
  Batch Build(RecordQueue& queue, const StreamCounters& counters, uint64_t room);

  // No batch is longer than this many bytes.
  uint64_t batch_max() const { return buffer_.size(); }

 private:
  const StreamKind kind_;
  const uint32_t seed_;
  const uint64_t block_size_;
  AlignedBuffer buffer_;
};

// Bytes that begin like a batch, verified.
struct BatchView {
  uint64_t number = 0;
  uint64_t first_sequence = 0;
  uint32_t record_count = 0;
  uint32_t lead_length = 0;
  uint32_t payload_length = 0;
  uint32_t payload_crc = 0;
  uint64_t bytes = 0;  // of the whole batch: whole blocks
};
// kCorruption saying why `bytes`, at least one block, do not begin with a batch of this stream.
Result<BatchView> CheckBatchHeader(std::span<const std::byte> bytes, StreamKind kind, uint32_t seed,
                                   uint64_t block_size);
// `bytes`: the whole batch.
Result<std::span<const std::byte>> CheckBatchPayload(std::span<const std::byte> bytes, const BatchView& batch,
                                                     uint32_t seed);

class StreamReader {
 public:
  // `place` must outlive the reader.
  StreamReader(ZonedDevice& device, StreamKind kind, uint32_t seed, const StreamPlace& place);

  struct Record {
    uint64_t sequence = 0;
    std::span<const std::byte> body;  // valid until the next call
  };
  // Empty at the end. kCorruption with place and effect; read errors.
  Result<std::optional<Record>> Next();

  struct End {
    size_t segment = 0;       // index of the segment in which the stream ends
    uint64_t offset = 0;      // bytes in its zone: behind the last batch
    StreamCounters counters;  // of the batch that would follow
    uint64_t bytes = 0;       // of all batches
    bool torn = false;        // a torn batch or an incomplete record was left out
  };
  // Once Next has returned nothing.
  End end() const;

  // The error for a record that was read, but cannot be.
  Status Damage(std::string_view what) const;

 private:
  std::optional<Record> TakeRecord();
  Result<bool> ReadBatch();
  Result<bool> FindBatch();
  Status EnterSegment(size_t index);
  Result<bool> EndsHere();
  Status CheckPlaceInStream(const BatchView& batch) const;
  Status Accept(const BatchView& batch, std::span<const std::byte> payload);
  // The `length` bytes at offset_, which lie below limit_.
  Result<std::span<const std::byte>> Fetch(uint64_t length);

  uint64_t pending() const { return stream_.size() - taken_; }
  const Segment& segment() const { return place_.segments[segment_]; }

  ZonedDevice& device_;
  const StreamKind kind_;
  const uint32_t seed_;
  const StreamPlace& place_;

  bool entered_ = false;  // segment_, offset_ and limit_ are set
  size_t segment_ = 0;
  uint64_t offset_ = 0;  // bytes in the zone: the next batch
  uint64_t limit_ = 0;   // bytes in the zone: no batch beyond
  bool segment_start_ = true;
  bool torn_ = false;

  // The record that was cut where the stream begins is not ours, up to the end of the first lead.
  bool skipping_ = true;
  StreamCounters counters_;  // sequence: of the next record that TakeRecord returns
  uint64_t bytes_ = 0;

  std::vector<std::byte> stream_;  // payloads; the first taken_ bytes are done
  size_t taken_ = 0;

  AlignedBuffer buffer_;
  uint64_t buffer_begin_ = 0;  // what of the zone is in the buffer
  uint64_t buffer_end_ = 0;
};

}  // namespace isozone
