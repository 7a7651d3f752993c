#include "fs/batch_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "fs/metadata_io.h"

namespace isozone {
namespace {

uint32_t HeaderCrc(const BatchHeader& header, uint32_t seed) {
  constexpr size_t kCovered = offsetof(BatchHeader, payload_crc);
  return Crc32c(std::as_bytes(std::span(&header, 1)).subspan(kCovered), seed);
}

uint64_t BatchBytes(uint64_t payload_length, uint64_t block_size) {
  return RoundUp(sizeof(BatchHeader) + payload_length, block_size);
}

// The bytes of the record that begins here, or nothing where its length is cut off.
std::optional<uint64_t> RecordBytes(std::span<const std::byte> bytes) {
  uint32_t length = 0;
  if (bytes.size() < kRecordPrefix) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return kRecordPrefix + length;
}

uint32_t CountRecords(std::span<const std::byte> bytes) {
  uint32_t count = 0;
  while (!bytes.empty()) {
    ++count;
    bytes = bytes.subspan(std::min<uint64_t>(RecordBytes(bytes).value_or(UINT64_MAX), bytes.size()));
  }
  return count;
}

std::string_view StreamName(StreamKind kind) { return kind == StreamKind::kJournal ? "journal" : "checkpoint"; }

}  // namespace

void RecordQueue::Drop(uint64_t records) {
  begins_.erase(begins_.begin(), begins_.begin() + static_cast<ptrdiff_t>(records));
  front_ = begins_.empty() ? base_ + bytes_.size() : begins_.front();
}

void RecordQueue::Compact() {
  // Moves what is left only when at least as much was taken: constant cost per byte.
  const uint64_t taken = front_ - base_;
  if (taken < bytes_.size() - taken) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(taken));
  base_ = front_;
}

BatchBuilder::BatchBuilder(StreamKind kind, uint32_t seed, const DeviceGeometry& geometry)
    : kind_(kind),
      seed_(seed),
      block_size_(geometry.block_size),
      buffer_(geometry.max_transfer == 0
                  ? BatchHeader::kMaxBytes
                  : std::max(block_size_,
                             RoundDown(std::min(BatchHeader::kMaxBytes, geometry.max_transfer), block_size_))) {}

BatchBuilder::Batch BatchBuilder::Build(RecordQueue& queue, const StreamCounters& counters, uint64_t room) {
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
  header.kind = static_cast<uint8_t>(kind_);
  while (!begins.empty() && begins.front() < end) {
    ++header.record_count;
    begins.pop_front();
  }

  const std::span<const std::byte> payload(queue.bytes_.data() + (begin - queue.base_), length);
  header.payload_crc = Crc32c(payload, seed_);
  header.header_crc = HeaderCrc(header, seed_);
  const std::span<std::byte> blocks = buffer_.span().first(BatchBytes(length, block_size_));
  std::memcpy(blocks.data(), &header, sizeof(header));
  std::memcpy(blocks.data() + sizeof(header), payload.data(), payload.size());
  std::memset(blocks.data() + sizeof(header) + length, 0, blocks.size() - sizeof(header) - length);
  queue.front_ = end;

  const bool cuts_record = !queue.empty() && (begins.empty() || begins.front() > end);
  return {blocks, {counters.batch + 1, counters.sequence + header.record_count}, header.record_count, cuts_record};
}

Result<BatchView> CheckBatchHeader(std::span<const std::byte> bytes, StreamKind kind, uint32_t seed,
                                   uint64_t block_size) {
  BatchHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != BatchHeader::kMagic) return Status::Corruption("no batch begins here");
  if (header.header_crc != HeaderCrc(header, seed)) {
    return Status::Corruption("the checksum of the batch's header is wrong");
  }
  const uint64_t batch_bytes = BatchBytes(header.payload_length, block_size);
  if (header.kind != static_cast<uint8_t>(kind) || header.payload_length == 0 ||
      header.lead_length > header.payload_length || batch_bytes > BatchHeader::kMaxBytes) {
    return Status::Corruption("the batch's header makes no sense");
  }
  return BatchView{header.number,         header.first_sequence, header.record_count, header.lead_length,
                   header.payload_length, header.payload_crc,    batch_bytes};
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

StreamReader::StreamReader(ZonedDevice& device, StreamKind kind, uint32_t seed, const StreamPlace& place)
    : device_(device),
      kind_(kind),
      seed_(seed),
      place_(place),
      counters_{place.batch, place.sequence},
      buffer_(std::min<uint64_t>(BatchHeader::kMaxBytes, device.geometry().zone_capacity)) {}

Result<std::optional<StreamReader::Record>> StreamReader::Next() {
  for (;;) {
    if (std::optional<Record> record = TakeRecord()) return record;
    ISOZONE_ASSIGN_OR_RETURN(const bool more, ReadBatch());
    if (!more) return std::optional<Record>();
  }
}

StreamReader::End StreamReader::end() const { return {segment_, offset_, counters_, bytes_, torn_ || pending() > 0}; }

Status StreamReader::Damage(std::string_view what) const {
  const std::string effect = kind_ == StreamKind::kJournal
                                 ? fmt::format("the changes from sequence {} on are lost", counters_.sequence)
                                 : std::string("the files cannot be found");
  return Status::Corruption(fmt::format("{} corrupt in zone {} at offset {}: {}; {}", StreamName(kind_),
                                        segment().zone.value(), offset_, what, effect));
}

std::optional<StreamReader::Record> StreamReader::TakeRecord() {
  const std::span<const std::byte> rest = std::span<const std::byte>(stream_).subspan(taken_);
  const std::optional<uint64_t> bytes = RecordBytes(rest);
  if (!bytes || *bytes > rest.size()) return std::nullopt;
  taken_ += *bytes;
  return Record{counters_.sequence++, rest.subspan(kRecordPrefix, *bytes - kRecordPrefix)};
}

Status StreamReader::EnterSegment(size_t index) {
  segment_ = index;
  offset_ = segment().begin;
  segment_start_ = true;
  buffer_begin_ = buffer_end_ = 0;
  entered_ = true;
  limit_ = segment().open() ? device_.geometry().zone_capacity : segment().end;
  if (offset_ == limit_) return {};  // holds nothing, so its zone need not be readable
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(device_, segment().zone));
  if (zone.state == ZoneState::kOffline) return Damage("the zone is offline");
  if (segment().open()) limit_ = zone.write_pointer;
  if (zone.write_pointer < limit_ || limit_ < offset_) {
    return Damage(fmt::format("the zone is written to {} only", zone.write_pointer));
  }
  return {};
}

// True: the stream ends before limit_. False: a writer beside us has written on since limit_ was looked up.
Result<bool> StreamReader::EndsHere() {
  for (size_t i = segment_ + 1; i < place_.segments.size(); ++i) {
    const Segment& behind = place_.segments[i];
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(device_, behind.zone));
    if (zone.state == ZoneState::kOffline || zone.write_pointer <= behind.begin) continue;
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor here, DescribeZone(device_, segment().zone));
    if (here.write_pointer <= limit_) {
      return Damage(fmt::format("it ends here, but goes on in zone {}", behind.zone.value()));
    }
    limit_ = here.write_pointer;
    return false;
  }
  return true;
}

// True: a batch begins at offset_. False: the end.
Result<bool> StreamReader::FindBatch() {
  if (!entered_) ISOZONE_RETURN_IF_ERROR(EnterSegment(0));
  while (offset_ == limit_) {
    if (segment().open() && limit_ < device_.geometry().zone_capacity) {
      ISOZONE_ASSIGN_OR_RETURN(const bool ends, EndsHere());
      if (ends) return false;
      continue;
    }
    if (segment_ + 1 == place_.segments.size()) return false;
    ISOZONE_RETURN_IF_ERROR(EnterSegment(segment_ + 1));
  }
  return true;
}

Result<std::span<const std::byte>> StreamReader::Fetch(uint64_t length) {
  if (offset_ < buffer_begin_ || offset_ + length > buffer_end_) {
    const uint64_t size = std::min<uint64_t>(buffer_.size(), limit_ - offset_);
    const DeviceOffset from(device_.geometry().ZoneStart(segment().zone).value() + offset_);
    ISOZONE_RETURN_IF_ERROR(ReadBlocks(device_, from, buffer_.span().first(size)));
    buffer_begin_ = offset_;
    buffer_end_ = offset_ + size;
  }
  return std::span<const std::byte>(buffer_.data() + (offset_ - buffer_begin_), length);
}

Status StreamReader::CheckPlaceInStream(const BatchView& batch) const {
  if (batch.number != counters_.batch) {
    return Damage(fmt::format("batch {} follows where {} should", batch.number, counters_.batch));
  }
  const bool drops_pending = segment_start_ && batch.lead_length == 0;
  const uint64_t sequence = counters_.sequence + (pending() > 0 && !drops_pending ? 1 : 0);
  if (batch.first_sequence != sequence) {
    return Damage(fmt::format("record {} follows where {} should", batch.first_sequence, sequence));
  }
  if (batch.bytes > device_.geometry().zone_capacity - offset_) return Damage("the batch is longer than its zone");
  return {};
}

Result<bool> StreamReader::ReadBatch() {
  if (torn_) return false;
  ISOZONE_ASSIGN_OR_RETURN(const bool found, FindBatch());
  if (!found) return false;
  const uint64_t block_size = device_.geometry().block_size;
  ISOZONE_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, Fetch(block_size));
  const Result<BatchView> batch = CheckBatchHeader(bytes, kind_, seed_, block_size);
  if (!batch.ok()) return Damage(batch.status().message());
  ISOZONE_RETURN_IF_ERROR(CheckPlaceInStream(*batch));
  if (batch->bytes > limit_ - offset_) {
    if (!segment().open()) return Damage("the segment ends inside a batch");
    ISOZONE_ASSIGN_OR_RETURN(torn_, EndsHere());
    return !torn_;
  }
  ISOZONE_ASSIGN_OR_RETURN(bytes, Fetch(batch->bytes));
  const Result<std::span<const std::byte>> payload = CheckBatchPayload(bytes, *batch, seed_);
  if (!payload.ok()) return Damage(payload.status().message());
  ISOZONE_RETURN_IF_ERROR(Accept(*batch, *payload));
  return true;
}

Status StreamReader::Accept(const BatchView& batch, std::span<const std::byte> payload) {
  stream_.erase(stream_.begin(), stream_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  if (skipping_) {
    skipping_ = batch.lead_length == batch.payload_length;
    payload = payload.subspan(batch.lead_length);
  } else if (segment_start_ && batch.lead_length == 0) {
    stream_.clear();
  } else if (stream_.empty() != (batch.lead_length == 0)) {
    return Damage("the batch does not go on where the one before ended");
  }
  stream_.insert(stream_.end(), payload.begin(), payload.end());
  counters_.batch = batch.number + 1;
  offset_ += batch.bytes;
  bytes_ += batch.bytes;
  segment_start_ = false;
  return {};
}

}  // namespace isozone
