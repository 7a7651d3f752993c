#include "store/metadata/metadata_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/metadata/metadata_io.h"

namespace isozone {

MetadataReader::MetadataReader(ZonedDevice& device, const Superblock& superblock)
    : device_(device),
      superblock_(superblock),
      seed_(ChecksumSeed(superblock.uuid, superblock.generation)),
      zones_{superblock.zone},
      buffer_(std::min<uint64_t>(BatchHeader::kMaxBytes, device.geometry().zone_capacity)) {}

Result<std::optional<MetadataReader::Record>> MetadataReader::Next() {
  for (;;) {
    if (std::optional<Record> record = TakeRecord()) {
      if (record->kind == BatchKind::kCheckpoint && IsFooter(record->body)) {
        ISOZONE_RETURN_IF_ERROR(TakeFooter(*record));
      }
      return record;
    }
    ISOZONE_ASSIGN_OR_RETURN(const bool more, ReadBatch());
    if (!more) return std::optional<Record>();
  }
}

MetadataReader::End MetadataReader::end() const {
  return {zone_, offset_, counters_, journal_bytes_, torn_ || pending() > 0};
}

Status MetadataReader::Damage(std::string_view what) const {
  const std::string effect = footer_ ? fmt::format("the changes from sequence {} on are lost", counters_.sequence)
                                     : std::string("the files cannot be found");
  return Status::Corruption(fmt::format("{} corrupt in zone {} at offset {}: {}; {}",
                                        footer_ ? "journal" : "checkpoint", zone().value(), offset_, what, effect));
}

std::optional<MetadataReader::Record> MetadataReader::TakeRecord() {
  const std::span<const std::byte> rest = std::span<const std::byte>(stream_).subspan(taken_);
  const std::optional<uint64_t> bytes = RecordBytes(rest);
  if (!bytes || *bytes > rest.size()) return std::nullopt;
  taken_ += *bytes;
  return Record{footer_ ? BatchKind::kJournal : BatchKind::kCheckpoint, counters_.sequence++,
                rest.subspan(kRecordPrefix, *bytes - kRecordPrefix)};
}

Status MetadataReader::TakeFooter(const Record& record) {
  const Result<CheckpointFooter> footer = DecodeFooter(record.body);
  if (!footer.ok()) return Damage(footer.status().message());
  if (pending() > 0) return Damage("something follows the footer in its batch");
  if (footer->inodes > record.sequence) return Damage(fmt::format("it holds no {} inodes", footer->inodes));
  if (footer->sequence != superblock_.sequence) return Damage("the footer is not that of this superblock");
  footer_ = *footer;
  counters_.sequence = footer->sequence + 1;
  return {};
}

Status MetadataReader::LookUpLimit() {
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor found, DescribeZone(device_, zone()));
  state_ = found.state;
  if (state_ == ZoneState::kOffline) return Damage("the zone is offline");
  const bool to_the_end = state_ == ZoneState::kFull || state_ == ZoneState::kReadOnly;
  const uint64_t limit = to_the_end ? capacity() : found.write_pointer;
  if (limit < offset_) return Damage(fmt::format("the zone is written to {} only", limit));
  if (limit > limit_) buffer_begin_ = buffer_end_ = 0;
  limit_ = limit;
  return {};
}

Status MetadataReader::Enter(size_t index, uint64_t offset) {
  zone_ = index;
  offset_ = offset;
  limit_ = 0;
  buffer_begin_ = buffer_end_ = 0;
  entered_ = true;
  return LookUpLimit();
}

// Returns true if there is more to look at, at offset_ or in the next zone, and false at the end.
Result<bool> MetadataReader::GoOn() {
  if (offset_ < capacity()) {
    const uint64_t before = limit_;
    ISOZONE_RETURN_IF_ERROR(LookUpLimit());
    if (limit_ > before) return true;  // a writer in another process has written on
    ISOZONE_RETURN_IF_ERROR(CheckNothingBehind());
    return false;
  }
  if (!linked()) return false;
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor next, DescribeZone(device_, zones_[zone_ + 1]));
  if (next.state == ZoneState::kEmpty) return false;
  ISOZONE_RETURN_IF_ERROR(Enter(zone_ + 1, 0));
  return true;
}

// Checks that the linked zone is empty. A writer goes on there only when this zone is full.
Status MetadataReader::CheckNothingBehind() const {
  if (!linked()) return {};
  const ZoneId behind = zones_[zone_ + 1];
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor next, DescribeZone(device_, behind));
  if (next.state == ZoneState::kOffline || next.write_pointer == 0) return {};
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor here, DescribeZone(device_, zone()));
  if (here.write_pointer > limit_) return {};  // a writer has written on since limit_ was looked up
  return Damage(fmt::format("it ends here, but goes on in zone {}", behind.value()));
}

// Returns true if a batch begins at offset_, and false at the end.
Result<bool> MetadataReader::FindBatch() {
  if (!entered_) ISOZONE_RETURN_IF_ERROR(Enter(0, SuperblockSlot(device_.geometry())));
  while (offset_ == limit_ || offset_ == capacity()) {
    ISOZONE_ASSIGN_OR_RETURN(const bool more, GoOn());
    if (!more) return false;
  }
  return true;
}

Result<std::span<const std::byte>> MetadataReader::Fetch(uint64_t offset, uint64_t length) {
  if (offset < buffer_begin_ || offset + length > buffer_end_) {
    uint64_t size = std::min<uint64_t>(buffer_.size(), limit_ - offset);
    const DeviceOffset from(device_.geometry().ZoneStart(zone()).value() + offset);
    // If a block further on cannot be read, what lies before it is read without it.
    if (!ReadBlocks(device_, from, buffer_.span().first(size)).ok()) {
      size = length;
      ISOZONE_RETURN_IF_ERROR(ReadBlocks(device_, from, buffer_.span().first(size)));
    }
    buffer_begin_ = offset;
    buffer_end_ = offset + size;
  }
  return std::span<const std::byte>(buffer_.data() + (offset - buffer_begin_), length);
}

Result<bool> MetadataReader::ReadsAsZeros(uint64_t from) {
  const uint64_t block = device_.geometry().block_size;
  for (uint64_t at = from; at < limit_; at += block) {
    ISOZONE_ASSIGN_OR_RETURN(const auto bytes, Fetch(at, block));
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; })) return false;
  }
  return true;
}

Result<bool> MetadataReader::HasBatchBehind(uint64_t from) {
  const uint64_t block = device_.geometry().block_size;
  for (uint64_t at = from + block; at < limit_; at += block) {
    ISOZONE_ASSIGN_OR_RETURN(const auto bytes, Fetch(at, block));
    const Result<BatchView> batch = CheckBatchHeader(bytes, seed_, block);
    if (batch.ok() && batch->number > counters_.batch) return true;
  }
  return false;
}

// Is called where no whole batch is at offset_. Returns false if the copy ends there, and an error if it is damaged.
Result<bool> MetadataReader::EndsBefore(uint64_t zeros_from, std::string_view what) {
  bool ends = false;
  if (state_ == ZoneState::kFull) {
    ISOZONE_ASSIGN_OR_RETURN(ends, ReadsAsZeros(zeros_from));
    torn_ = ends && zeros_from > offset_;
  } else if (state_ == ZoneState::kReadOnly) {
    ISOZONE_ASSIGN_OR_RETURN(const bool more, HasBatchBehind(offset_));
    ends = !more;
  }
  if (!ends) return Damage(what);
  ISOZONE_RETURN_IF_ERROR(CheckNothingBehind());
  return false;
}

Status MetadataReader::CheckPlaceInStream(const BatchView& batch) const {
  if (batch.number != counters_.batch) {
    return Damage(fmt::format("batch {} follows where {} should", batch.number, counters_.batch));
  }
  if ((batch.kind == BatchKind::kJournal) != footer_.has_value()) {
    return Damage(footer_ ? "a checkpoint follows its footer" : "the checkpoint's footer is missing");
  }
  const uint64_t sequence = counters_.sequence + (pending() > 0 ? 1 : 0);
  if (batch.first_sequence != sequence) {
    return Damage(fmt::format("record {} follows where {} should", batch.first_sequence, sequence));
  }
  if (batch.bytes > capacity() - offset_) return Damage("the batch is longer than its zone");
  return {};
}

Result<bool> MetadataReader::ReadBatch() {
  torn_ = false;
  ISOZONE_ASSIGN_OR_RETURN(const bool found, FindBatch());
  if (!found) return false;
  const uint64_t block_size = device_.geometry().block_size;
  ISOZONE_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, Fetch(offset_, block_size));
  const Result<BatchView> batch = CheckBatchHeader(bytes, seed_, block_size);
  if (!batch.ok()) return EndsBefore(offset_, batch.status().message());
  ISOZONE_RETURN_IF_ERROR(CheckPlaceInStream(*batch));
  if (batch->bytes > limit_ - offset_) {
    ISOZONE_ASSIGN_OR_RETURN(const bool more, GoOn());
    torn_ = !more;
    return more;
  }
  ISOZONE_ASSIGN_OR_RETURN(bytes, Fetch(offset_, batch->bytes));
  const Result<std::span<const std::byte>> payload = CheckBatchPayload(bytes, *batch, seed_);
  if (!payload.ok()) {
    const std::string_view what = payload.status().message();
    ISOZONE_ASSIGN_OR_RETURN(const bool more, EndsBefore(offset_ + batch->bytes - block_size, what));
    torn_ = true;
    return more;
  }
  ISOZONE_RETURN_IF_ERROR(Accept(*batch, *payload));
  return true;
}

Status MetadataReader::TakeLink(const BatchView& batch) {
  if (!batch.next_zone) return linked() ? Damage("the batch forgets in which zone it goes on") : Status::Ok();
  if (linked()) {
    return zones_.back() == *batch.next_zone ? Status::Ok()
                                             : Damage("the batch goes on in another zone than those before");
  }
  const bool known = std::find(zones_.begin(), zones_.end(), *batch.next_zone) != zones_.end();
  if (known || batch.next_zone->value() >= device_.geometry().zone_count) {
    return Damage(fmt::format("it cannot go on in zone {}", batch.next_zone->value()));
  }
  zones_.push_back(*batch.next_zone);
  return {};
}

Status MetadataReader::Accept(const BatchView& batch, std::span<const std::byte> payload) {
  stream_.erase(stream_.begin(), stream_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  if (batch.payload_length > 0 && stream_.empty() != (batch.lead_length == 0)) {
    return Damage("the batch does not go on where the one before ended");
  }
  ISOZONE_RETURN_IF_ERROR(TakeLink(batch));
  stream_.insert(stream_.end(), payload.begin(), payload.end());
  if (batch.kind == BatchKind::kJournal) {
    journal_bytes_ += batch.bytes;
    const uint64_t last = batch.first_sequence + batch.record_count - 1;
    joined_ |= batch.copies > 0;
    if (batch.copies == 1) alone_sequence_ = std::max(alone_sequence_, last);
  }
  counters_.batch = batch.number + 1;
  offset_ += batch.bytes;
  return {};
}

uint64_t MetadataReader::AloneBehind() {
  const uint64_t block = device_.geometry().block_size;
  uint64_t alone = alone_sequence_;
  // Nothing is known of zones that only lost batches link to.
  for (size_t i = zone_; i < zones_.size(); ++i) {
    if (i > zone_ && !Enter(i, 0).ok()) break;
    for (uint64_t at = RoundDown(offset_, block); at < limit_; at += block) {
      const auto bytes = Fetch(at, block);
      if (!bytes.ok()) continue;
      const Result<BatchView> batch = CheckBatchHeader(*bytes, seed_, block);
      if (!batch.ok() || batch->kind != BatchKind::kJournal || batch->copies != 1) continue;
      alone = std::max(alone, batch->first_sequence + batch->record_count - 1);
    }
  }
  return alone;
}

}  // namespace isozone
