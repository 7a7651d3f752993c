// Batches: how records are written to the device. docs/format.md, "Copies", has the layout.
//
//   records    length (4 bytes) and body, one after another: one long sequence of bytes
//   batches    that sequence, cut anywhere: header with two CRCs, payload, zeros to a whole block; each is one durable
//              device write. A batch is cut short where its zone ends, so zones are filled to the last block (and are
//              then no longer active), and a record may be longer than a zone.
//
// Each batch carries its number and the sequence of the first record that begins in it, both without gaps, so that no
// batch can be lost, repeated or exchanged unnoticed. It also carries the number of copies of the metadata that were
// being written, and, as soon as that is known, the zone in which the batches continue once their own is full.
//
// No length is trusted, and no memory allocated by it, before the CRC that covers it has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/format.h"

namespace isozone {

// A copy is batches of its checkpoint, the last of which ends with the footer, then batches of the journal.
enum class BatchKind : uint8_t { kCheckpoint = 1, kJournal = 2 };

// The counters of the next batch of a copy.
struct StreamCounters {
  uint64_t batch = 0;
  uint64_t sequence = 0;  // in a checkpoint, records count from 0
};

// Records that are waiting to be cut into batches.
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

  uint64_t size() const { return base_ + bytes_.size() - front_; }  // bytes
  bool empty() const { return size() == 0; }

 private:
  friend class BatchBuilder;
  void Compact();

  // Positions count from the first byte ever added.
  uint64_t base_ = 0;   // position of bytes_[0]
  uint64_t front_ = 0;  // position of the first byte that was not taken
  std::vector<std::byte> bytes_;
  std::deque<uint64_t> begins_;  // positions of the records that begin at or behind front_
};

// Makes batches of one copy.
class BatchBuilder {
 public:
  BatchBuilder(uint32_t seed, const DeviceGeometry& geometry);

  struct Info {
    BatchKind kind = BatchKind::kJournal;
    uint8_t copies = 1;
    std::optional<ZoneId> next_zone;
  };
  struct Batch {
    std::span<std::byte> blocks;  // to be written; valid until the next Build
    StreamCounters next;          // counters of the batch behind it
    bool cuts_record = false;     // its last record continues in the next batch
  };
  // Takes the content of one batch of at most `room` bytes from the front of `queue`; `room` must be at least one
  // block. If the queue is empty, the batch carries only `info`.
  Batch Build(RecordQueue& queue, const StreamCounters& counters, const Info& info, uint64_t room);

  // Returns the bytes of the longest batch.
  uint64_t batch_max() const { return buffer_.size(); }

 private:
  const uint32_t seed_;
  const uint64_t block_size_;
  AlignedBuffer buffer_;
};

// Returns the most bytes that one batch takes on this device.
uint64_t BatchBytesMax(const DeviceGeometry& geometry);
// Returns the most bytes that `bytes` of records, prefixes included, take on the device, cut at the ends of zones of
// `geometry`.
uint64_t BytesInBatches(const DeviceGeometry& geometry, uint64_t bytes);

// A verified batch at the beginning of some bytes.
struct BatchView {
  BatchKind kind = BatchKind::kJournal;
  uint32_t copies = 0;
  std::optional<ZoneId> next_zone;
  uint64_t number = 0;
  uint64_t first_sequence = 0;
  uint32_t record_count = 0;
  uint32_t lead_length = 0;
  uint32_t payload_length = 0;
  uint32_t payload_crc = 0;
  uint64_t bytes = 0;  // bytes of the whole batch: whole blocks
};
// Checks the header of a batch. kCorruption, with the reason, if `bytes`, at least one block, do not begin with a batch
// of this copy.
Result<BatchView> CheckBatchHeader(std::span<const std::byte> bytes, uint32_t seed, uint64_t block_size);
// Checks the payload, and returns it. `bytes` is the whole batch.
Result<std::span<const std::byte>> CheckBatchPayload(std::span<const std::byte> bytes, const BatchView& batch,
                                                     uint32_t seed);

// Returns the bytes, prefix included, of the record that begins here; empty if its length is cut off.
std::optional<uint64_t> RecordBytes(std::span<const std::byte> bytes);

}  // namespace isozone
