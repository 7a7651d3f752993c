#include "isozone/zenfs/zenfs_device.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/units.h"
#include "isozone/backup/manifest.h"
#include "store/metadata/metadata_io.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kFrameHeader = 8;
constexpr uint64_t kReadSize = 1 * kMiB;

struct MetadataZone {
  ZenFsSuperblock superblock;
  std::string bytes;  // up to the write pointer
  uint64_t offset = 0;
};

// ZenFS counts all zones of a disk. Isozone counts those that it uses: it leaves conventional ones alone, for example.
class ZenFsPlaces {
 public:
  explicit ZenFsPlaces(const ZonedDevice& device) : geometry_(device.geometry()), zone_count_(geometry_.zone_count) {
    auto disk = device.description().kernel;
    if (!disk) return;
    zone_count_ += disk->conventional_zones + disk->small_zones;
    positions_ = std::move(disk->zone_positions);
  }

  uint32_t zone_count() const { return zone_count_; }
  // The place on the device that ZenFS means by `place`. None if Isozone does not use the zone.
  std::optional<uint64_t> Find(uint64_t place) const {
    if (positions_.empty()) return place;
    const uint64_t in_zone = place % geometry_.zone_size;
    const auto found = std::ranges::lower_bound(positions_, place - in_zone);
    if (found == positions_.end() || *found != place - in_zone) return std::nullopt;
    return static_cast<uint64_t>(found - positions_.begin()) * geometry_.zone_size + in_zone;
  }

 private:
  const DeviceGeometry& geometry_;
  uint32_t zone_count_;
  std::vector<uint64_t> positions_;  // of zones, in order, as ZenFS has them; empty if they are the same
};

Status BadFile(const ZenFsFile& file, std::string_view what) {
  const std::string name = file.names.empty() ? fmt::format("file {}", file.id) : Printable(file.names.front());
  return Status::Corruption(fmt::format("ZenFS metadata: {} {}", name, what));
}

// Reads `length` bytes from anywhere on the device.
Result<std::string> ReadBytes(ZonedDevice& device, uint64_t start, uint64_t length) {
  const uint64_t block = device.geometry().block_size;
  const uint64_t begin = start / block * block;
  AlignedBuffer buffer(RoundUp(start + length, block) - begin);
  ISOZONE_RETURN_IF_ERROR(ReadBlocks(device, DeviceOffset(begin), buffer.span()));
  return std::string(reinterpret_cast<const char*>(buffer.span().data()) + (start - begin), length);
}

Result<std::vector<MetadataZone>> FindMetadata(ZonedDevice& device, const ZenFsPlaces& places) {
  const DeviceGeometry& geometry = device.geometry();
  std::vector<MetadataZone> found;
  Status failure = Status::NotFound(fmt::format("{} holds no ZenFS file system", device.name()));
  for (uint32_t i = 0; i < std::min(kZenFsMetadataZones, geometry.zone_count); ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(device, ZoneId(i)));
    if (zone.write_pointer == 0) continue;
    MetadataZone candidate;
    ISOZONE_ASSIGN_OR_RETURN(candidate.bytes,
                             ReadBytes(device, geometry.ZoneStart(ZoneId(i)).value(), zone.write_pointer));
    const auto record = NextZenFsRecord(candidate.bytes, geometry.block_size, candidate.offset);
    if (!record.ok() || !*record) continue;  // not of ZenFS, or one that was being written
    auto superblock = ZenFsSuperblock::Decode(**record);
    if (!superblock.ok()) {
      failure = superblock.status();
      continue;
    }
    candidate.superblock = *superblock;
    // ZenFS's block is a physical one, which may be several of those that the device must be written in.
    if (superblock->block_size == 0 || superblock->block_size % geometry.block_size != 0 ||
        uint64_t{superblock->zone_size} * superblock->block_size != geometry.zone_size ||
        superblock->zone_count > places.zone_count()) {
      return Status::Corruption("the ZenFS superblock is of a device with other zones or blocks");
    }
    candidate.offset = RoundUp(candidate.offset, uint64_t{superblock->block_size});
    found.push_back(std::move(candidate));
  }
  if (found.empty()) return failure;
  std::ranges::sort(found, std::greater(), [](const MetadataZone& zone) { return zone.superblock.sequence; });
  return found;
}

struct Metadata {
  ZenFsFiles files;
  uint32_t block_size = 0;  // bytes
};

// As of the newest zone with a snapshot: one without was being begun. So was one whose snapshot is damaged, if the zone
// before it is still there, because ZenFS resets that one when the snapshot is written.
Result<Metadata> ReadMetadata(ZonedDevice& device, const ZenFsPlaces& places) {
  ISOZONE_ASSIGN_OR_RETURN(std::vector<MetadataZone> zones, FindMetadata(device, places));
  for (size_t i = 0; i < zones.size(); ++i) {
    MetadataZone& zone = zones[i];
    const bool follows = i + 1 < zones.size() && zones[i + 1].superblock.sequence + 1 == zone.superblock.sequence;
    ZenFsFiles files;
    for (;;) {
      const auto record = NextZenFsRecord(zone.bytes, zone.superblock.block_size, zone.offset);
      if (!record.ok() && !files.has_snapshot() && follows) break;
      ISOZONE_RETURN_IF_ERROR(record.status());
      if (!*record) break;
      ISOZONE_ASSIGN_OR_RETURN(const ZenFsFiles::Applied applied, files.Apply(**record));
      if (applied == ZenFsFiles::Applied::kEnd) break;
    }
    if (files.has_snapshot()) return Metadata{std::move(files), zone.superblock.block_size};
  }
  return Status::Corruption("ZenFS metadata: no zone has a list of the files");
}

// Places on the device, in bytes.
struct ZoneEnds {
  uint64_t written = 0;
  uint64_t capacity = 0;
};

// Those of the zone of files that `start` lies in.
Result<ZoneEnds> EndsOfZone(const ZonedDevice& device, const ZenFsFile& file, uint64_t start) {
  const DeviceGeometry& geometry = device.geometry();
  const uint64_t number = start / geometry.zone_size;
  if (number < kZenFsMetadataZones || number >= geometry.zone_count) return BadFile(file, "lies outside of the zones");
  const ZoneId zone(static_cast<uint32_t>(number));
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor described, DescribeZone(device, zone));
  const uint64_t begin = geometry.ZoneStart(zone).value();
  return ZoneEnds{begin + described.write_pointer, begin + geometry.zone_capacity};
}

// Has the extents as places on the device.
Status FindExtents(const ZenFsPlaces& places, ZenFsFile& file) {
  std::vector<uint64_t*> starts;
  for (ZenFsExtent& extent : file.extents) starts.push_back(&extent.start);
  if (file.active_start != kNoActiveExtent) starts.push_back(&file.active_start);
  for (uint64_t* const start : starts) {
    const std::optional<uint64_t> found = places.Find(*start);
    if (!found) return BadFile(file, "lies outside of the zones");
    *start = *found;
  }
  return Status::Ok();
}

// Cuts off what a power cut kept from the device of the last write to a log. ZenFS recovers such a write as a whole.
Status CheckExtents(const ZonedDevice& device, ZenFsFile& file) {
  for (ZenFsExtent& extent : file.extents) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneEnds ends, EndsOfZone(device, file, extent.start));
    const bool is_last = &extent == &file.extents.back();
    const uint64_t limit = file.is_sparse && is_last ? ends.capacity : ends.written;
    if (extent.start > ends.written || extent.length > limit - extent.start) {
      return BadFile(file, "has an extent that was not written");
    }
    const uint64_t missing = extent.length - std::min(extent.length, ends.written - extent.start);
    extent.length -= missing;
    file.size -= std::min(file.size, missing);
  }
  return Status::Ok();
}

// Adds what was written to the active extent.
Status Recover(ZonedDevice& device, uint32_t block, ZenFsFile& file) {
  if (file.active_start == kNoActiveExtent) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const ZoneEnds ends, EndsOfZone(device, file, file.active_start));
  const uint64_t end = ends.written;
  if (file.active_start > end || file.active_start % block != 0) return BadFile(file, "was being written nowhere");
  if (!file.is_sparse && end > file.active_start) file.extents.push_back({file.active_start, end - file.active_start});
  for (uint64_t at = file.active_start; file.is_sparse && at < end;) {
    ISOZONE_ASSIGN_OR_RETURN(const std::string header, ReadBytes(device, at, kFrameHeader));
    uint64_t length = 0;
    for (size_t i = 0; i < kFrameHeader; ++i) length |= uint64_t{static_cast<uint8_t>(header[i])} << (8 * i);
    if (length == 0 || length > ends.capacity - at - kFrameHeader) {
      return BadFile(file, "has a write of an impossible length");
    }
    const uint64_t start = at + kFrameHeader;
    file.extents.push_back({start, std::min(length, end - start)});  // less than `length` if a power cut tore it
    at += RoundUp(kFrameHeader + length, block);
  }
  file.size = 0;
  for (const ZenFsExtent& extent : file.extents) file.size += extent.length;
  return Status::Ok();
}

Status CheckFile(const ZenFsFile& file, std::set<std::string>& names) {
  for (const std::string& name : file.names) {
    if (!IsSafePath(name)) return BadFile(file, "has an invalid name");
    if (!names.insert(name).second) return BadFile(file, "has a name that another file has");
  }
  uint64_t there = 0;
  for (const ZenFsExtent& extent : file.extents) there += extent.length;
  return file.size <= there ? Status::Ok() : BadFile(file, "is longer than its extents");
}

}  // namespace

Result<std::vector<ZenFsFile>> ReadZenFs(ZonedDevice& device) {
  const ZenFsPlaces places(device);
  ISOZONE_ASSIGN_OR_RETURN(const Metadata metadata, ReadMetadata(device, places));
  std::vector<ZenFsFile> files;
  std::set<std::string> names;
  for (const auto& [id, found] : metadata.files.files()) {
    ZenFsFile file = found;
    for (std::string& name : file.names) {
      if (!name.starts_with('/')) name.insert(name.begin(), '/');
    }
    if (file.names.empty()) continue;  // it was removed while it was being written
    ISOZONE_RETURN_IF_ERROR(FindExtents(places, file));
    ISOZONE_RETURN_IF_ERROR(CheckExtents(device, file));
    ISOZONE_RETURN_IF_ERROR(Recover(device, metadata.block_size, file));
    ISOZONE_RETURN_IF_ERROR(CheckFile(file, names));
    files.push_back(std::move(file));
  }
  return files;
}

Status ReadZenFsFile(ZonedDevice& device, const ZenFsFile& file,
                     const std::function<Status(std::span<const std::byte>)>& take) {
  uint64_t left = file.size;
  for (const ZenFsExtent& extent : file.extents) {
    for (uint64_t done = 0; done < extent.length && left > 0;) {
      const uint64_t length = std::min({kReadSize, extent.length - done, left});
      ISOZONE_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(device, extent.start + done, length));
      ISOZONE_RETURN_IF_ERROR(take(std::as_bytes(std::span(bytes))));
      done += length;
      left -= length;
    }
  }
  return Status::Ok();
}

}  // namespace isozone::cli
