#include "store/metadata/batch_stream.h"

#include <algorithm>

namespace isozone {
namespace {

uint32_t HeaderCrc(const BatchHeader& header, uint32_t seed) {
  constexpr size_t kCovered = offsetof(BatchHeader, payload_crc);
  return Crc32c(std::as_bytes(std::span(&header, 1)).subspan(kCovered), seed);
}

uint64_t BatchBytes(uint64_t payload_length, uint64_t block_size) {
  return RoundUp(sizeof(BatchHeader) + payload_length, block_size);
}

uint32_t CountRecords(std::span<const std::byte> bytes) {
  uint32_t count = 0;
  while (!bytes.empty()) {
    ++count;
    bytes = bytes.subspan(std::min<uint64_t>(RecordBytes(bytes).value_or(UINT64_MAX), bytes.size()));
  }
  return count;
}

bool IsKind(uint8_t kind) {
  return kind == static_cast<uint8_t>(BatchKind::kCheckpoint) || kind == static_cast<uint8_t>(BatchKind::kJournal);
}

}  // namespace

std::optional<uint64_t> RecordBytes(std::span<const std::byte> bytes) {
  uint32_t length = 0;
  if (bytes.size() < kRecordPrefix) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return kRecordPrefix + length;
}

void RecordQueue::Compact() {
  // Moves what is left only when at least as much was taken, so that the cost per byte is constant.
  const uint64_t taken = front_ - base_;
  if (taken < bytes_.size() - taken) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(taken));
  base_ = front_;
}

uint64_t BatchBytesMax(const DeviceGeometry& geometry) {
  if (geometry.max_transfer == 0) return BatchHeader::kMaxBytes;
  const uint64_t transfer = RoundDown(std::min(BatchHeader::kMaxBytes, geometry.max_transfer), geometry.block_size);
  return std::max<uint64_t>(geometry.block_size, transfer);
}

uint64_t BytesInBatches(const DeviceGeometry& geometry, uint64_t bytes) {
  // Every batch but the last is filled up. Each zone that is begun cuts one batch short.
  const uint64_t payload = BatchBytesMax(geometry) - sizeof(BatchHeader);
  const uint64_t zones = bytes / (geometry.zone_capacity) + 2;
  return RoundUp(bytes + sizeof(BatchHeader) * (bytes / payload + 1 + 2 * zones), geometry.block_size);
}

BatchBuilder::BatchBuilder(uint32_t seed, const DeviceGeometry& geometry)
    : seed_(seed), block_size_(geometry.block_size), buffer_(BatchBytesMax(geometry)) {}

BatchBuilder::Batch BatchBuilder::Build(RecordQueue& queue, const StreamCounters& counters, const Info& info,
                                        uint64_t room) {
  const uint64_t payload_max = std::min<uint64_t>(room, buffer_.size()) - sizeof(BatchHeader);
  const uint64_t length = std::min(queue.size(), payload_max);
  const uint64_t begin = queue.front_;
  const uint64_t end = begin + length;
  std::deque<uint64_t>& begins = queue.begins_;

  BatchHeader header{};
  header.magic = BatchHeader::kMagic;
  header.payload_length = static_cast<uint32_t>(length);
  header.number = counters.batch;
  header.first_sequence = counters.sequence;
  header.lead_length = static_cast<uint32_t>(begins.empty() ? length : std::min(begins.front() - begin, length));
  header.next_zone = info.next_zone ? info.next_zone->value() : BatchHeader::kNoZone;
  header.kind = static_cast<uint8_t>(info.kind);
  header.copies = info.copies;
  while (!begins.empty() && begins.front() < end) {
    ++header.record_count;
    begins.pop_front();
  }

  const std::span<const std::byte> payload(queue.bytes_.data() + (begin - queue.base_), length);
  header.payload_crc = Crc32c(payload, seed_);
  header.header_crc = HeaderCrc(header, seed_);
  const std::span<std::byte> blocks = buffer_.span().first(BatchBytes(length, block_size_));
  std::memcpy(blocks.data(), &header, sizeof(header));
  if (length > 0) std::memcpy(blocks.data() + sizeof(header), payload.data(), payload.size());
  std::memset(blocks.data() + sizeof(header) + length, 0, blocks.size() - sizeof(header) - length);
  queue.front_ = end;

  const bool cuts_record = !queue.empty() && (begins.empty() || begins.front() > end);
  return {blocks, {counters.batch + 1, counters.sequence + header.record_count}, cuts_record};
}

Result<BatchView> CheckBatchHeader(std::span<const std::byte> bytes, uint32_t seed, uint64_t block_size) {
  BatchHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != BatchHeader::kMagic) return Status::Corruption("no batch begins here");
  if (header.header_crc != HeaderCrc(header, seed)) {
    return Status::Corruption("the checksum of the batch's header is wrong");
  }
  const uint64_t batch_bytes = BatchBytes(header.payload_length, block_size);
  if (!IsKind(header.kind) || header.lead_length > header.payload_length || batch_bytes > BatchHeader::kMaxBytes) {
    return Status::Corruption("the batch's header makes no sense");
  }
  BatchView view;
  view.kind = static_cast<BatchKind>(header.kind);
  view.copies = header.copies;
  if (header.next_zone != BatchHeader::kNoZone) view.next_zone = ZoneId(header.next_zone);
  view.number = header.number;
  view.first_sequence = header.first_sequence;
  view.record_count = header.record_count;
  view.lead_length = header.lead_length;
  view.payload_length = header.payload_length;
  view.payload_crc = header.payload_crc;
  view.bytes = batch_bytes;
  return view;
}

Result<std::span<const std::byte>> CheckBatchPayload(std::span<const std::byte> bytes, const BatchView& batch,
                                                     uint32_t seed) {
  const std::span<const std::byte> payload = bytes.subspan(sizeof(BatchHeader), batch.payload_length);
  if (Crc32c(payload, seed) != batch.payload_crc) {
    return Status::Corruption("the checksum of the batch's payload is wrong");
  }
  if (CountRecords(payload.subspan(batch.lead_length)) != batch.record_count) {
    return Status::Corruption("the batch does not hold the records that its header claims");
  }
  return payload;
}

}  // namespace isozone
