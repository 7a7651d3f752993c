#include "store/metadata/superblock.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "base/uri.h"
#include "store/metadata/metadata_io.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

// ZenFS begins one of the zones 0 to 2 with a record: CRC, length, and then its superblock, which begins with this
// number.
constexpr uint32_t kZenFsMagic = 0x5A454E46;
constexpr size_t kZenFsMagicOffset = 8;

constexpr size_t kReadsInFlight = 64;

SuperblockHeader HeaderOf(std::span<const std::byte> slot) {
  SuperblockHeader header;
  std::memcpy(&header, slot.data(), sizeof(header));
  return header;
}

// Returns the CRC of a slot as if its CRC field were 0.
uint32_t SlotCrc(std::span<const std::byte> slot) {
  constexpr size_t kBehindCrc = offsetof(SuperblockHeader, crc) + sizeof(SuperblockHeader::crc);
  constexpr uint32_t kZero = 0;
  uint32_t crc = Crc32c(slot.first(offsetof(SuperblockHeader, crc)));
  crc = Crc32c(&kZero, sizeof(kZero), crc);
  return Crc32c(slot.subspan(kBehindCrc), crc);
}

Status CheckVersion(const SuperblockHeader& header) {
  const bool known = header.version >= kOldestVersionRead && header.version <= kFormatVersion;
  if (known && header.incompatible == 0) return {};
  if (header.version < kOldestVersionRead) {
    return Status::NotSupported(
        fmt::format("the device carries Isozone format version {}, this program knows versions {} to {} only: copy its "
                    "files away with the program that wrote them, then format it again with isozone mkfs --force",
                    header.version, kOldestVersionRead, kFormatVersion));
  }
  return Status::NotSupported(fmt::format(
      "the device carries Isozone format version {}{}, this program knows versions {} to {} only: use a newer one",
      header.version, header.incompatible != 0 ? " with newer features" : "", kOldestVersionRead, kFormatVersion));
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

// Whether the first slot of a zone may have been written. The write pointer of a zone that is read-only says nothing.
bool MayBegin(const ZoneDescriptor& zone, uint64_t slot) {
  if (zone.state == ZoneState::kOffline || zone.state == ZoneState::kEmpty) return false;
  return zone.state == ZoneState::kReadOnly || zone.write_pointer >= slot;
}

// Reads the first slots of some zones, many at a time.
class SlotReader {
 public:
  explicit SlotReader(ZonedDevice& device) : device_(device), slot_(SuperblockSlot(device.geometry())) {}

  // Calls `visit` with the zone and its first slot, or the error, for each of `zones`, in order.
  template <typename Visit>
  void Read(std::span<const ZoneId> zones, Visit visit) {
    AlignedBuffer buffer(slot_ * std::min(zones.size(), kReadsInFlight));
    while (!zones.empty()) {
      const std::span<const ZoneId> now = zones.first(std::min(zones.size(), kReadsInFlight));
      std::vector<DeviceRequest> requests(now.size());
      Latch read;
      for (size_t i = 0; i < now.size(); ++i) {
        requests[i].op = DeviceOp::kRead;
        requests[i].offset = device_.geometry().ZoneStart(now[i]);
        requests[i].data = buffer.data() + i * slot_;
        requests[i].length = slot_;
        read.Expect(requests[i]);
        device_.Submit(requests[i]);
      }
      read.Wait();
      for (size_t i = 0; i < now.size(); ++i) {
        visit(now[i], std::span<const std::byte>(requests[i].data, slot_), ToStatus(device_.geometry(), requests[i]));
      }
      zones = zones.subspan(now.size());
    }
  }

 private:
  ZonedDevice& device_;
  const uint64_t slot_;
};

Result<std::vector<ZoneId>> ZonesToLookAt(const ZonedDevice& device, bool everywhere) {
  const uint32_t zone_count = device.geometry().zone_count;
  std::vector<ZoneDescriptor> report(everywhere ? zone_count : std::min(zone_count, kHomeZonesMax));
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  std::vector<ZoneId> zones;
  for (const ZoneDescriptor& zone : report) {
    if (MayBegin(zone, SuperblockSlot(device.geometry()))) zones.push_back(zone.zone);
  }
  return zones;
}

}  // namespace

uint64_t SuperblockSlot(const DeviceGeometry& geometry) {
  return std::max<uint64_t>(SuperblockHeader::kSlotMin, geometry.block_size);
}

void EncodeSuperblock(const Superblock& superblock, std::span<std::byte> slot) {
  SuperblockHeader header{};
  header.magic = SuperblockHeader::kMagic;
  header.version = kFormatVersion;
  header.uuid = superblock.uuid;
  header.generation = superblock.generation;
  header.copies = superblock.copies;
  header.block_size = superblock.block_size;
  header.zone_count = superblock.zone_count;
  header.zone_size = superblock.zone_size;
  header.zone_capacity = superblock.zone_capacity;
  header.sequence = superblock.sequence;
  header.zone = superblock.zone.value();
  superblock.label.copy(header.label.data(), header.label.size() - 1);

  std::memset(slot.data(), 0, slot.size());
  std::memcpy(slot.data(), &header, sizeof(header));
  header.crc = SlotCrc(slot);
  std::memcpy(slot.data(), &header, sizeof(header));
}

Result<Superblock> DecodeSuperblock(std::span<const std::byte> slot, const DeviceGeometry& geometry, ZoneId zone) {
  const SuperblockHeader header = HeaderOf(slot);
  if (header.magic != SuperblockHeader::kMagic) return Status::Corruption("it does not begin with Isozone's magic");
  if (header.crc != SlotCrc(slot)) return Status::Corruption("its checksum is wrong");
  ISOZONE_RETURN_IF_ERROR(CheckVersion(header));
  ISOZONE_RETURN_IF_ERROR(CheckGeometry(header, geometry));
  if (header.copies == 0 || header.copies > kMetadataCopiesMax) {
    return Status::Corruption(fmt::format("it claims {} copies", header.copies));
  }
  if (header.generation > kGenerationMax || header.sequence > kSequenceMax) {
    return Status::Corruption(fmt::format("it claims generation {} and sequence {}, which no device lives to see",
                                          header.generation, header.sequence));
  }
  if (header.zone != zone.value()) return Status::Corruption(fmt::format("it belongs into zone {}", header.zone));
  Superblock superblock;
  superblock.version = header.version;
  superblock.uuid = header.uuid;
  superblock.label.assign(header.label.data(), strnlen(header.label.data(), header.label.size()));
  superblock.copies = header.copies;
  superblock.generation = header.generation;
  superblock.sequence = header.sequence;
  superblock.zone = zone;
  superblock.block_size = header.block_size;
  superblock.zone_count = header.zone_count;
  superblock.zone_size = header.zone_size;
  superblock.zone_capacity = header.zone_capacity;
  return superblock;
}

Result<std::vector<FoundSuperblock>> FindSuperblocks(ZonedDevice& device, bool everywhere) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneId> zones, ZonesToLookAt(device, everywhere));
  std::vector<FoundSuperblock> found;
  SlotReader(device).Read(zones, [&](ZoneId zone, std::span<const std::byte> slot, const Status& status) {
    if (!status.ok()) {
      // An unreadable slot matters only where a superblock is likely to be.
      if (zone.value() < kHomeZonesMax) found.push_back({zone, status});
    } else if (HeaderOf(slot).magic == SuperblockHeader::kMagic) {
      found.push_back({zone, DecodeSuperblock(slot, device.geometry(), zone)});
    }
  });
  return found;
}

Result<DeviceContent> ProbeDevice(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneId> zones, ZonesToLookAt(device, /*everywhere=*/true));
  bool written = false;
  for (uint32_t i = 0; i < std::min(device.geometry().zone_count, kProbedZones); ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(device, ZoneId(i)));
    written |= descriptor.write_pointer > 0;
  }
  DeviceContent content = written ? DeviceContent::kUnknown : DeviceContent::kEmpty;
  Status failed;
  SlotReader(device).Read(zones, [&](ZoneId zone, std::span<const std::byte> slot, const Status& status) {
    const bool first = zone.value() < kProbedZones;
    if (!status.ok()) {
      if (first && failed.ok()) failed = status;
      return;
    }
    uint32_t zenfs = 0;
    std::memcpy(&zenfs, slot.data() + kZenFsMagicOffset, sizeof(zenfs));
    if (HeaderOf(slot).magic == SuperblockHeader::kMagic) {
      content = DeviceContent::kIsozone;
    } else if (first && zenfs == kZenFsMagic && content != DeviceContent::kIsozone) {
      content = DeviceContent::kZenFs;
    }
  });
  if (!failed.ok() && content == DeviceContent::kUnknown) return failed;
  return content;
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
