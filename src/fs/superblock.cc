#include "fs/superblock.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/uri.h"
#include "fs/metadata_io.h"

namespace isozone {
namespace {

// In the first block of one of zones 0 to 2: a record with its CRC and length, then ZenFS's superblock, which begins
// so.
constexpr uint32_t kZenFsMagic = 0x5A454E46;
constexpr size_t kZenFsMagicOffset = 8;

SuperblockHeader HeaderOf(std::span<const std::byte> slot) {
  SuperblockHeader header;
  std::memcpy(&header, slot.data(), sizeof(header));
  return header;
}

// The CRC of a slot as if its CRC field were 0.
uint32_t SlotCrc(std::span<const std::byte> slot) {
  constexpr size_t kBehindCrc = offsetof(SuperblockHeader, crc) + sizeof(SuperblockHeader::crc);
  constexpr uint32_t kZero = 0;
  uint32_t crc = Crc32c(slot.first(offsetof(SuperblockHeader, crc)));
  crc = Crc32c(&kZero, sizeof(kZero), crc);
  return Crc32c(slot.subspan(kBehindCrc), crc);
}

void PutSegments(StreamKind kind, const StreamPlace& place, std::span<std::byte>& out) {
  for (const Segment& segment : place.segments) {
    const SegmentEntry entry{static_cast<uint32_t>(kind), segment.zone.value(), segment.begin, segment.end};
    std::memcpy(out.data(), &entry, sizeof(entry));
    out = out.subspan(sizeof(entry));
  }
}

Status CheckSegment(const SegmentEntry& entry, const DeviceGeometry& geometry) {
  const uint64_t end = entry.end == Segment::kOpen ? geometry.zone_capacity : entry.end;
  const bool known = entry.kind == static_cast<uint32_t>(StreamKind::kCheckpoint) ||
                     entry.kind == static_cast<uint32_t>(StreamKind::kJournal);
  if (!known || entry.zone < kFirstOtherZone.value() || entry.zone >= geometry.zone_count || entry.begin > end ||
      end > geometry.zone_capacity || !IsAligned(entry.begin, geometry.block_size) ||
      !IsAligned(end, geometry.block_size)) {
    return Status::Corruption(fmt::format("it names a segment of kind {} in zone {} from {} to {}, which cannot be",
                                          entry.kind, entry.zone, entry.begin, entry.end));
  }
  if (entry.kind == static_cast<uint32_t>(StreamKind::kCheckpoint) && entry.end == Segment::kOpen) {
    return Status::Corruption("it names a checkpoint without an end");
  }
  return {};
}

Status CheckGeometry(const SuperblockHeader& header, const DeviceGeometry& geometry) {
  if (header.block_size == geometry.block_size && header.zone_count == geometry.zone_count &&
      header.zone_size == geometry.zone_size && header.zone_capacity == geometry.zone_capacity) {
    return {};
  }
  return Status::InvalidArgument(fmt::format(
      "the file system was made for a device of {} zones of {} (capacity {}, blocks of {} bytes), but this one has {} "
      "of {} (capacity {}, blocks of {} bytes): open it with the geometry it was formatted with",
      header.zone_count, FormatSize(header.zone_size), FormatSize(header.zone_capacity), header.block_size,
      geometry.zone_count, FormatSize(geometry.zone_size), FormatSize(geometry.zone_capacity), geometry.block_size));
}

// The whole slots of one superblock zone.
struct SlotZone {
  ZoneDescriptor descriptor;
  uint64_t slots = 0;
};

Result<SlotZone> DescribeSlots(const ZonedDevice& device, ZoneId zone) {
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(device, zone));
  return SlotZone{descriptor, descriptor.write_pointer / SuperblockSlot(device.geometry())};
}

Status ReadSlot(ZonedDevice& device, ZoneId zone, uint64_t index, AlignedBuffer& slot) {
  slot = AlignedBuffer(SuperblockSlot(device.geometry()));
  const uint64_t start = device.geometry().ZoneStart(zone).value();
  return ReadBlocks(device, DeviceOffset(start + index * slot.size()), slot.span());
}

// Whether the first or last slot of a superblock zone is one of ours.
Result<bool> HasSuperblock(ZonedDevice& device, ZoneId zone) {
  ISOZONE_ASSIGN_OR_RETURN(const SlotZone slots, DescribeSlots(device, zone));
  if (slots.slots == 0) return false;
  AlignedBuffer slot;
  for (const uint64_t index : {uint64_t{0}, slots.slots - 1}) {
    ISOZONE_RETURN_IF_ERROR(ReadSlot(device, zone, index, slot));
    if (HeaderOf(slot.span()).magic == SuperblockHeader::kMagic) return true;
  }
  return false;
}

Result<bool> HasZenFs(ZonedDevice& device, ZoneId zone) {
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(device, zone));
  if (descriptor.write_pointer == 0) return false;
  AlignedBuffer block(device.geometry().block_size);
  ISOZONE_RETURN_IF_ERROR(ReadBlocks(device, device.geometry().ZoneStart(zone), block.span()));
  uint32_t magic = 0;
  std::memcpy(&magic, block.data() + kZenFsMagicOffset, sizeof(magic));
  return magic == kZenFsMagic;
}

Status OfflineSuperblock(ZoneId zone) {
  return Status::IoError(fmt::format("zone {}, which may hold the newest superblock, is offline", zone.value()));
}

// The newest superblock of one zone, or nothing where the zone holds none.
Result<std::optional<FoundSuperblock>> ReadNewestOf(ZonedDevice& device, ZoneId zone) {
  ISOZONE_ASSIGN_OR_RETURN(const SlotZone slots, DescribeSlots(device, zone));
  if (slots.descriptor.state == ZoneState::kOffline) return OfflineSuperblock(zone);
  if (slots.slots == 0) return std::optional<FoundSuperblock>();
  AlignedBuffer slot;
  ISOZONE_RETURN_IF_ERROR(ReadSlot(device, zone, slots.slots - 1, slot));
  Result<Superblock> superblock = DecodeSuperblock(slot.span(), device.geometry());
  const uint64_t offset = (slots.slots - 1) * slot.size();
  if (!superblock.ok()) {
    if (!superblock.status().Is(StatusCode::kCorruption)) return superblock.status();
    return superblock.status().WithContext(
        fmt::format("superblock corrupt in zone {} at offset {}, so no file can be found", zone.value(), offset));
  }
  FoundSuperblock found{std::move(superblock).value(), zone, offset + slot.size()};
  // Behind a torn slot, and in a zone that takes no more writes, the next one cannot go.
  const bool torn = !IsAligned(slots.descriptor.write_pointer, slot.size());
  if (torn || !IsWritable(slots.descriptor.state)) found.next_offset = device.geometry().zone_capacity;
  return std::optional(std::move(found));
}

}  // namespace

uint64_t SuperblockSlot(const DeviceGeometry& geometry) {
  return std::max<uint64_t>(SuperblockHeader::kSlotMin, geometry.block_size);
}

size_t SuperblockSegmentsMax(const DeviceGeometry& geometry) {
  return (SuperblockSlot(geometry) - sizeof(SuperblockHeader)) / sizeof(SegmentEntry);
}

void EncodeSuperblock(const Superblock& superblock, std::span<std::byte> slot) {
  SuperblockHeader header{};
  header.magic = SuperblockHeader::kMagic;
  header.version = kFormatVersion;
  header.uuid = superblock.uuid;
  header.sequence = superblock.sequence;
  header.segment_count =
      static_cast<uint32_t>(superblock.checkpoint.segments.size() + superblock.journal.segments.size());
  header.block_size = superblock.block_size;
  header.zone_count = superblock.zone_count;
  header.zone_size = superblock.zone_size;
  header.zone_capacity = superblock.zone_capacity;
  header.checkpoint_batch = superblock.checkpoint.batch;
  header.journal_batch = superblock.journal.batch;
  header.journal_sequence = superblock.journal.sequence;
  superblock.label.copy(header.label.data(), header.label.size() - 1);

  std::memset(slot.data(), 0, slot.size());
  std::span<std::byte> segments = slot.subspan(sizeof(header));
  PutSegments(StreamKind::kCheckpoint, superblock.checkpoint, segments);
  PutSegments(StreamKind::kJournal, superblock.journal, segments);
  std::memcpy(slot.data(), &header, sizeof(header));
  header.crc = SlotCrc(slot);
  std::memcpy(slot.data(), &header, sizeof(header));
}

Result<Superblock> DecodeSuperblock(std::span<const std::byte> slot, const DeviceGeometry& geometry) {
  const SuperblockHeader header = HeaderOf(slot);
  if (header.magic != SuperblockHeader::kMagic) return Status::Corruption("it does not begin with Isozone's magic");
  if (header.crc != SlotCrc(slot)) return Status::Corruption("its checksum is wrong");
  if (header.version != kFormatVersion || header.incompatible != 0) {
    return Status::NotSupported(fmt::format(
        "the device carries Isozone format version {}{}, this program knows version {} only: use a newer one",
        header.version, header.incompatible != 0 ? " with newer features" : "", kFormatVersion));
  }
  ISOZONE_RETURN_IF_ERROR(CheckGeometry(header, geometry));
  if (header.segment_count > SuperblockSegmentsMax(geometry)) {
    return Status::Corruption(fmt::format("it claims {} segments", header.segment_count));
  }

  Superblock superblock;
  superblock.uuid = header.uuid;
  superblock.label.assign(header.label.data(), strnlen(header.label.data(), header.label.size()));
  superblock.sequence = header.sequence;
  superblock.block_size = header.block_size;
  superblock.zone_count = header.zone_count;
  superblock.zone_size = header.zone_size;
  superblock.zone_capacity = header.zone_capacity;
  superblock.checkpoint.batch = header.checkpoint_batch;
  superblock.journal.batch = header.journal_batch;
  superblock.journal.sequence = header.journal_sequence;
  for (uint32_t i = 0; i < header.segment_count; ++i) {
    SegmentEntry entry;
    std::memcpy(&entry, slot.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
    ISOZONE_RETURN_IF_ERROR(CheckSegment(entry, geometry));
    const bool journal = entry.kind == static_cast<uint32_t>(StreamKind::kJournal);
    StreamPlace& place = journal ? superblock.journal : superblock.checkpoint;
    place.segments.push_back({ZoneId(entry.zone), entry.begin, entry.end});
  }
  if (superblock.checkpoint.segments.empty() || superblock.journal.segments.empty()) {
    return Status::Corruption("it names no checkpoint or no journal");
  }
  return superblock;
}

Result<DeviceContent> ProbeDevice(ZonedDevice& device) {
  bool written = false;
  for (uint32_t i = 0; i < std::min(device.geometry().zone_count, kProbedZones); ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(device, ZoneId(i)));
    written |= descriptor.write_pointer > 0;
  }
  if (!written) return DeviceContent::kEmpty;
  for (const ZoneId zone : kSuperblockZones) {
    ISOZONE_ASSIGN_OR_RETURN(const bool ours, HasSuperblock(device, zone));
    if (ours) return DeviceContent::kIsozone;
  }
  for (uint32_t i = 0; i < std::min(device.geometry().zone_count, kProbedZones); ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const bool zenfs, HasZenFs(device, ZoneId(i)));
    if (zenfs) return DeviceContent::kZenFs;
  }
  return DeviceContent::kUnknown;
}

Result<FoundSuperblock> ReadSuperblock(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  switch (content) {
    case DeviceContent::kIsozone:
      break;
    case DeviceContent::kEmpty:
      return Status::NotFound(fmt::format("{} is not formatted: run isozone mkfs", device.name()));
    case DeviceContent::kZenFs:
      return Status::NotSupported(
          fmt::format("{} is formatted by ZenFS, which Isozone does not read: run isozone mkfs --force to replace it",
                      device.name()));
    case DeviceContent::kUnknown:
      for (const ZoneId zone : kSuperblockZones) {
        ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(device, zone));
        if (descriptor.state == ZoneState::kOffline) return OfflineSuperblock(zone);
      }
      return Status::NotFound(
          fmt::format("{} holds data but no Isozone superblock: run isozone mkfs --force if nothing on it is needed",
                      device.name()));
  }
  std::optional<FoundSuperblock> newest;
  for (const ZoneId zone : kSuperblockZones) {
    ISOZONE_ASSIGN_OR_RETURN(std::optional<FoundSuperblock> found, ReadNewestOf(device, zone));
    if (!found) continue;
    if (newest && newest->superblock.uuid != found->superblock.uuid) {
      return Status::Corruption("the superblocks in zones 0 and 1 are of different file systems");
    }
    if (!newest || found->superblock.sequence > newest->superblock.sequence) newest = std::move(found);
  }
  // ProbeDevice saw one, so only a writer beside us can have taken it away.
  if (!newest) return Status::Corruption("the superblock vanished while it was read");
  return std::move(*newest);
}

SuperblockWriter::SuperblockWriter(ZonedDevice& device, ZoneId zone, uint64_t next_offset)
    : device_(device), zone_(zone), next_offset_(next_offset), slot_(SuperblockSlot(device.geometry())) {}

Status SuperblockWriter::WriteSlot() {
  const DeviceOffset offset(device_.geometry().ZoneStart(zone_).value() + next_offset_);
  const DeviceStatus status = WriteDurably(device_, offset, slot_.span());
  if (status != DeviceStatus::kSuccess) {
    return Status::IoError(fmt::format("write of a superblock in zone {} at {} failed: {}", zone_.value(), next_offset_,
                                       DeviceStatusName(status)));
  }
  next_offset_ += slot_.size();
  return {};
}

Status SuperblockWriter::Write(Superblock& superblock) {
  const DeviceGeometry& geometry = device_.geometry();
  const size_t segments = superblock.checkpoint.segments.size() + superblock.journal.segments.size();
  if (segments > SuperblockSegmentsMax(geometry)) {
    return Status::NoSpace(
        fmt::format("metadata in {} pieces, but a superblock names at most {}: the zones are too "
                    "small for so many files",
                    segments, SuperblockSegmentsMax(geometry)));
  }
  ++superblock.sequence;
  EncodeSuperblock(superblock, slot_.span());
  if (next_offset_ + slot_.size() <= geometry.zone_capacity) return WriteSlot();

  const ZoneId old = zone_;
  zone_ = old == kSuperblockZones[0] ? kSuperblockZones[1] : kSuperblockZones[0];
  next_offset_ = 0;
  ISOZONE_RETURN_IF_ERROR(ManageZone(device_, DeviceOp::kReset, zone_));
  ISOZONE_RETURN_IF_ERROR(WriteSlot());
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor left, DescribeZone(device_, old));
  return IsActive(left.state) ? ManageZone(device_, DeviceOp::kReset, old) : Status::Ok();
}

std::string FormatUuid(const Uuid& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

Uuid RandomUuid() {
  std::random_device random;
  Uuid uuid;
  for (uint8_t& byte : uuid) byte = static_cast<uint8_t>(random());
  // RFC 9562: version 4, variant 10.
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0F) | 0x40);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3F) | 0x80);
  return uuid;
}

}  // namespace isozone
