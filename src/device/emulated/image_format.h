// The image file of an emulated SSD, version 1. Little-endian, offsets in bytes:
//
//   0          header block, 64 KiB, never changes: ImageHeader, and the profile's text from 4096 on. Its CRC-32C
//              covers all of it, with the field `crc` as 0
//   64 KiB     LiveBlock: who writes the image, and the counters
//   128 KiB    zone table: one ZoneEntry a zone
//   data       at the next multiple of 2 MiB: the zones, each at a multiple of 2 MiB; sparse
//
// The image is a file, or lies at the beginning of a block device, which may be larger.
//
// Every process that has the image open maps header, live block and table shared; only the one writer changes them. A
// zone's state and the bytes written to it share one atomic word. So a reader, and a process that opens the image after
// the writer was killed at any instruction, sees a state that was true at some time. The data of a zone is in the file
// before the word that makes it readable is stored.
//
// The file is untrusted: ParseImageHeader and CheckZoneTable accept any bytes without a fault, and allocate no memory
// by a size that was not checked first.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "device/zoned_device.h"

namespace isozone {

static_assert(std::endian::native == std::endian::little, "the image format is little-endian");
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the zone table is shared between processes");

inline constexpr std::array<char, 8> kImageMagic = {'I', 's', 'o', 'z', 'S', 'S', 'D', '\n'};
inline constexpr uint32_t kImageVersion = 1;
inline constexpr uint64_t kHeaderBlockSize = 64 * kKiB;
inline constexpr uint64_t kProfileTextOffset = 4096;
inline constexpr uint64_t kLiveBlockOffset = kHeaderBlockSize;
inline constexpr uint64_t kZoneTableOffset = 128 * kKiB;
inline constexpr uint64_t kDataAlignment = 2 * kMiB;  // a huge page
inline constexpr uint32_t kMaxZoneCount = uint32_t{1} << 24;
inline constexpr uint64_t kMaxZoneSize = uint64_t{1} << 40;
inline constexpr uint64_t kMaxImageSize = uint64_t{1} << 60;

// Flags of a header.
inline constexpr uint32_t kImageFuaCoversZone = 1;  // DeviceGeometry::fua_covers_zone
inline constexpr uint32_t kImageTimingOff = 2;      // opened with timing=off, unless a URI says otherwise
inline constexpr uint32_t kImageSyncDisk = 4;       // opened with sync=disk, unless a URI says otherwise

using ImageUuid = std::array<uint8_t, 16>;

struct ImageHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t crc;
  ImageUuid uuid;
  uint64_t created_s;  // since 1970, UTC
  uint64_t zone_size;
  uint64_t zone_capacity;
  uint64_t max_transfer;
  uint64_t max_append;
  uint64_t optimal_write;
  uint32_t zone_count;
  uint32_t block_size;
  uint32_t max_open_zones;
  uint32_t max_active_zones;
  uint32_t profile_size;  // bytes of text from kProfileTextOffset on
  uint32_t flags;         // an image without the last two flags is as old ones are
};
static_assert(sizeof(ImageHeader) == 104 && offsetof(ImageHeader, zone_count) == 80);

struct ZoneEntry {
  // (bytes written << 8) | ZoneState. The bytes written are the write pointer, except in a zone that was finished
  // early: it is full, but only the bytes written hold data.
  std::atomic<uint64_t> word;
  std::atomic<uint64_t> durable;    // bytes from the start that survive a power cut; at most what is written
  std::atomic<uint64_t> allocated;  // bytes; the file has no blocks of the zone at or beyond this
  std::atomic<uint64_t> resets;     // since the image was created
  static constexpr size_t kRangesBeyond = 4;
  std::array<std::atomic<uint64_t>, kRangesBeyond> durable_beyond;  // see durable_ranges.h; 0: none
};
static_assert(sizeof(ZoneEntry) == 64);

struct LiveBlock {
  std::atomic<uint32_t> writer_pid;   // meaningful while the writer's lock is held
  std::atomic<uint32_t> sync_failed;  // 1: a sync failed; since then none succeeded, nor was the lost data written anew
  std::array<char, 40> boot_id;       // of the host, from the writer's open to its orderly close; zeros otherwise
  std::atomic<uint64_t> media_bytes_written;
  std::atomic<uint64_t> resets;
  // One cache line each, chosen by thread, so that readers on several cores do not contend.
  struct alignas(64) Traffic {
    std::atomic<uint64_t> bytes_read;
    std::atomic<uint64_t> bytes_written;
  };
  static constexpr size_t kTrafficShards = 8;
  std::array<Traffic, kTrafficShards> traffic;
  std::atomic<uint64_t> finishes;
  std::atomic<uint64_t> dummy_bytes_written;  // included in media_bytes_written
};
static_assert(offsetof(LiveBlock, traffic) == 64 && offsetof(LiveBlock, finishes) == 576);
static_assert(offsetof(LiveBlock, dummy_bytes_written) == 584);

// The content of a header that was checked.
struct ImageInfo {
  ImageUuid uuid{};
  uint64_t created_s = 0;
  DeviceGeometry geometry;
  std::string profile_text;  // as FormatProfile wrote it; empty if the device has a geometry but no timing
  // How the device is run if the URI does not say it: as when it was made.
  bool timing_off = false;
  bool sync_disk = false;
};

// The places of the parts of the file, computed from a geometry that was checked.
struct ImageLayout {
  explicit ImageLayout(const DeviceGeometry& geometry);
  uint64_t zone_stride;
  uint64_t data_offset;
  uint64_t file_size;
};

// Returns how many zones of this kind an image of at most `bytes` has room for, up to kMaxZoneCount. `zone_count` is
// ignored.
uint32_t ZonesThatFit(DeviceGeometry geometry, uint64_t bytes);
// Fails with kInvalidArgument, which says how many zones would fit, if `path` of so many bytes is too small for an
// image of that geometry.
Status CheckImageFits(const DeviceGeometry& geometry, const std::string& path, uint64_t bytes);

// Fails with kInvalidArgument, which names the value that no device can have.
Status CheckGeometry(const DeviceGeometry& geometry);

// Returns the header block. kInvalidArgument if the geometry is impossible or the profile's text does not fit.
Result<std::vector<std::byte>> FormatImageHeader(const ImageInfo& info);
// Returns whether `bytes` begin as an image does, whole or not.
bool BeginsImage(std::span<const std::byte> bytes);
// Parses the beginning of the file: kHeaderBlockSize bytes, or fewer if the file is shorter. kCorruption if they are no
// header or a damaged one, kNotSupported for another version.
Result<ImageInfo> ParseImageHeader(std::span<const std::byte> bytes);

struct ZoneContent {
  ZoneState state = ZoneState::kEmpty;
  uint64_t written = 0;  // bytes
};
inline ZoneContent LoadContent(const ZoneEntry& entry) {
  const uint64_t word = entry.word.load(std::memory_order_acquire);
  return {static_cast<ZoneState>(word & 0xFF), word >> 8};
}
// Stores the content, and with it publishes everything that was stored before.
inline void StoreContent(ZoneEntry& entry, ZoneContent content) {
  entry.word.store(content.written << 8 | static_cast<uint64_t>(content.state), std::memory_order_release);
}

// Fails with kCorruption, which names the first zone whose entry no run of the state machine can have left.
Status CheckZoneTable(const DeviceGeometry& geometry, std::span<const ZoneEntry> table);

}  // namespace isozone
