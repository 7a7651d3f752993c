#include "device/emulated/image_format.h"

#include <cstring>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/uri.h"

namespace isozone {
namespace {

constexpr size_t kCrcOffset = offsetof(ImageHeader, crc);

uint32_t HeaderCrc(std::span<const std::byte> block) {
  constexpr std::array<std::byte, sizeof(uint32_t)> kZero{};
  const uint32_t head = Crc32c(block.first(kCrcOffset));
  const uint32_t with_zero = Crc32c(kZero, head);
  return Crc32c(block.subspan(kCrcOffset + kZero.size()), with_zero);
}

bool IsKnownState(ZoneState state) {
  switch (state) {
    case ZoneState::kEmpty:
    case ZoneState::kImplicitlyOpen:
    case ZoneState::kExplicitlyOpen:
    case ZoneState::kClosed:
    case ZoneState::kReadOnly:
    case ZoneState::kFull:
    case ZoneState::kOffline:
      return true;
  }
  return false;
}

// The rule that `content` breaks; null if it breaks none.
const char* BrokenRule(const DeviceGeometry& geometry, ZoneContent content) {
  if (!IsKnownState(content.state)) return "has an unknown state";
  if (content.written > geometry.zone_capacity) return "has more written than its capacity";
  if (!IsAligned(content.written, geometry.block_size)) return "has a write pointer inside a block";
  if (content.state == ZoneState::kEmpty && content.written != 0) return "is empty and has data";
  if (IsActive(content.state) && content.written == geometry.zone_capacity) return "is written up and not full";
  return nullptr;
}

}  // namespace

ImageLayout::ImageLayout(const DeviceGeometry& geometry)
    : zone_stride(RoundUp(geometry.zone_capacity, kDataAlignment)),
      data_offset(RoundUp(kZoneTableOffset + geometry.zone_count * sizeof(ZoneEntry), kDataAlignment)),
      file_size(data_offset + geometry.zone_count * zone_stride) {}

Status CheckGeometry(const DeviceGeometry& g) {
  const auto bad = [](const char* what, uint64_t value, const char* rule) {
    return Status::InvalidArgument(fmt::format("{} of {} is not possible: {}", what, value, rule));
  };
  if (!std::has_single_bit(g.block_size) || g.block_size < 512 || g.block_size > 65536) {
    return bad("block size", g.block_size, "it must be a power of two from 512 to 65536");
  }
  if (g.zone_count == 0 || g.zone_count > kMaxZoneCount) return bad("zone count", g.zone_count, "1 to 16777216 zones");
  if (g.zone_size == 0 || g.zone_size > kMaxZoneSize || !IsAligned(g.zone_size, g.block_size)) {
    return bad("zone size", g.zone_size, "it must be whole blocks, at most 1 TiB");
  }
  if (g.zone_capacity == 0 || g.zone_capacity > g.zone_size || !IsAligned(g.zone_capacity, g.block_size)) {
    return bad("zone capacity", g.zone_capacity, "it must be whole blocks, at most the zone size");
  }
  if (g.max_active_zones != 0 && g.max_open_zones > g.max_active_zones) {
    return bad("open zone limit", g.max_open_zones, "it must not exceed the active zone limit");
  }
  if (!IsAligned(g.max_transfer, g.block_size)) return bad("transfer limit", g.max_transfer, "it must be whole blocks");
  if (!IsAligned(g.max_append, g.block_size)) return bad("append limit", g.max_append, "it must be whole blocks");
  if (g.optimal_write < g.block_size || !IsAligned(g.optimal_write, g.block_size)) {
    return bad("optimal write size", g.optimal_write, "it must be whole blocks");
  }
  if (RoundUp(g.zone_size, kDataAlignment) > kMaxImageSize / g.zone_count) {
    return bad("zone count", g.zone_count, "the device would be larger than 1 EiB");
  }
  return Status::Ok();
}

Result<std::vector<std::byte>> FormatImageHeader(const ImageInfo& info) {
  const DeviceGeometry& g = info.geometry;
  ISOZONE_RETURN_IF_ERROR(CheckGeometry(g));
  if (info.profile_text.size() > kHeaderBlockSize - kProfileTextOffset) {
    return Status::InvalidArgument(fmt::format("the profile's text of {} bytes is too long for an image, at most {}",
                                               info.profile_text.size(), kHeaderBlockSize - kProfileTextOffset));
  }
  ImageHeader header{};
  header.magic = kImageMagic;
  header.version = kImageVersion;
  header.uuid = info.uuid;
  header.created_s = info.created_s;
  header.zone_size = g.zone_size;
  header.zone_capacity = g.zone_capacity;
  header.max_transfer = g.max_transfer;
  header.max_append = g.max_append;
  header.optimal_write = g.optimal_write;
  header.zone_count = g.zone_count;
  header.block_size = g.block_size;
  header.max_open_zones = g.max_open_zones;
  header.max_active_zones = g.max_active_zones;
  header.profile_size = static_cast<uint32_t>(info.profile_text.size());
  header.flags = (g.fua_covers_zone ? kImageFuaCoversZone : 0) | (info.timing_off ? kImageTimingOff : 0) |
                 (info.sync_disk ? kImageSyncDisk : 0);
  std::vector<std::byte> block(kHeaderBlockSize);
  std::memcpy(block.data(), &header, sizeof(header));
  std::memcpy(block.data() + kProfileTextOffset, info.profile_text.data(), info.profile_text.size());
  header.crc = HeaderCrc(block);
  std::memcpy(block.data() + kCrcOffset, &header.crc, sizeof(header.crc));
  return block;
}

bool BeginsImage(std::span<const std::byte> bytes) {
  return bytes.size() >= kImageMagic.size() && std::memcmp(bytes.data(), kImageMagic.data(), kImageMagic.size()) == 0;
}

uint32_t ZonesThatFit(DeviceGeometry geometry, uint64_t bytes) {
  geometry.zone_count = 1;
  const uint64_t stride = ImageLayout(geometry).zone_stride;
  geometry.zone_count = static_cast<uint32_t>(std::min<uint64_t>(bytes / stride, kMaxZoneCount));
  // The table in front of them grows with their number, by less than the zones.
  while (geometry.zone_count > 0 && ImageLayout(geometry).file_size > bytes) --geometry.zone_count;
  return geometry.zone_count;
}

Status CheckImageFits(const DeviceGeometry& geometry, const std::string& path, uint64_t bytes) {
  const uint64_t needed = ImageLayout(geometry).file_size;
  if (needed <= bytes) return {};
  return Status::InvalidArgument(fmt::format("{} zones need {}, and {} has {}; it has room for zones={}",
                                             geometry.zone_count, FormatSize(needed), path, FormatSize(bytes),
                                             ZonesThatFit(geometry, bytes)));
}

Result<ImageInfo> ParseImageHeader(std::span<const std::byte> bytes) {
  ImageHeader header;
  if (bytes.size() < sizeof(header) || !BeginsImage(bytes)) {
    return Status::Corruption("this is not an image of an emulated SSD; name another file, or create a new image");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kImageVersion) {
    return Status::NotSupported(fmt::format(
        "the image has format version {} and this program reads version {}; use the program that made it, or create "
        "a new image",
        header.version, kImageVersion));
  }
  if (bytes.size() < kHeaderBlockSize) {
    return Status::Corruption("the image is cut off inside its header; restore it from a copy, or create a new image");
  }
  bytes = bytes.first(kHeaderBlockSize);
  if (header.crc != HeaderCrc(bytes) || header.profile_size > kHeaderBlockSize - kProfileTextOffset) {
    return Status::Corruption("the image's header is damaged; restore it from a copy, or create a new image");
  }
  ImageInfo info;
  info.uuid = header.uuid;
  info.created_s = header.created_s;
  info.geometry = {.block_size = header.block_size,
                   .zone_count = header.zone_count,
                   .zone_size = header.zone_size,
                   .zone_capacity = header.zone_capacity,
                   .max_open_zones = header.max_open_zones,
                   .max_active_zones = header.max_active_zones,
                   .max_transfer = header.max_transfer,
                   .max_append = header.max_append,
                   .optimal_write = header.optimal_write,
                   .fua_covers_zone = (header.flags & kImageFuaCoversZone) != 0};
  if (const Status geometry = CheckGeometry(info.geometry); !geometry.ok()) {
    return Status::Corruption(fmt::format("the image's header is damaged: {}", geometry.message()));
  }
  info.timing_off = (header.flags & kImageTimingOff) != 0;
  info.sync_disk = (header.flags & kImageSyncDisk) != 0;
  info.profile_text.assign(reinterpret_cast<const char*>(bytes.data()) + kProfileTextOffset, header.profile_size);
  return info;
}

Status CheckZoneTable(const DeviceGeometry& geometry, std::span<const ZoneEntry> table) {
  for (size_t zone = 0; zone < table.size(); ++zone) {
    const ZoneContent content = LoadContent(table[zone]);
    const char* broken = BrokenRule(geometry, content);
    if (broken == nullptr && table[zone].allocated.load(std::memory_order_relaxed) > geometry.zone_size) {
      broken = "has blocks beyond its end";
    }
    if (broken == nullptr) continue;
    return Status::Corruption(fmt::format(
        "the image's zone table is damaged: zone {} {} (state {:#x}, {} bytes written); restore it from a copy, or "
        "create a new image",
        zone, broken, static_cast<unsigned>(content.state), content.written));
  }
  return Status::Ok();
}

}  // namespace isozone
