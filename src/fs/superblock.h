// The superblock: where the metadata is. Zones 0 and 1 hold superblocks and nothing else, appended in turn, each one
// slot; the one with the highest sequence counts. Writing it is what makes a new checkpoint or journal zone count, in
// one step.
//
// A torn slot (the device keeps a prefix, block by block) lies behind the last whole slot of its zone; it was never
// acknowledged, and the slot before counts. A whole slot that is not valid is corruption: an older superblock must not
// be used, for the zones it names may have been given back since.
//
// When a zone takes no more slots the other is reset, which holds only older superblocks, and written next; then the
// first is reset as well, unless it is full: its rest must not hold one of the few active zones, and finishing it would
// hide where its slots end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "fs/format.h"

namespace isozone {

inline constexpr ZoneId kSuperblockZones[] = {ZoneId(0), ZoneId(1)};
inline constexpr ZoneId kFirstOtherZone{2};

enum class StreamKind : uint8_t { kCheckpoint = 1, kJournal = 2 };

// One piece of a stream, in one zone.
struct Segment {
  static constexpr uint64_t kOpen = UINT64_MAX;
  ZoneId zone;
  uint64_t begin = 0;    // bytes from the start of the zone; whole blocks
  uint64_t end = kOpen;  // kOpen: up to the zone's capacity or its write pointer
  bool open() const { return end == kOpen; }
  bool operator==(const Segment&) const = default;
};

// A stream of records (batch_stream.h): its segments in order, and what its first batch must carry.
struct StreamPlace {
  std::vector<Segment> segments;
  uint64_t batch = 0;     // number of the first batch
  uint64_t sequence = 0;  // of the first record that begins in it
  bool operator==(const StreamPlace&) const = default;
};

struct Superblock {
  Uuid uuid{};
  std::string label;      // up to 63 bytes
  uint64_t sequence = 0;  // of this superblock
  // The device that was formatted.
  uint32_t block_size = 0;
  uint32_t zone_count = 0;
  uint64_t zone_size = 0;
  uint64_t zone_capacity = 0;

  StreamPlace checkpoint;  // its records count from 0, and its segments are never open
  StreamPlace journal;
};

// The bytes of one slot on this device.
uint64_t SuperblockSlot(const DeviceGeometry& geometry);
// How many segments, of checkpoint and journal together, a superblock has room for.
size_t SuperblockSegmentsMax(const DeviceGeometry& geometry);

// `slot` becomes a superblock; at most SuperblockSegmentsMax segments.
void EncodeSuperblock(const Superblock& superblock, std::span<std::byte> slot);
// kNotSupported: another version, or features this one does not know; kInvalidArgument: written for a device of another
// geometry; kCorruption. Everything in it has been checked against the geometry.
Result<Superblock> DecodeSuperblock(std::span<const std::byte> slot, const DeviceGeometry& geometry);

enum class DeviceContent : uint8_t {
  kEmpty,    // no zone that a file system would begin with is written
  kIsozone,  // of whatever version
  kZenFs,
  kUnknown,  // written, by nobody we know
};
// Looks at the first zones only. Read errors are returned.
Result<DeviceContent> ProbeDevice(ZonedDevice& device);
inline constexpr uint32_t kProbedZones = 3;  // that it looks at, from the first on: ZenFS has its metadata in three

struct FoundSuperblock {
  Superblock superblock;
  ZoneId zone;               // where it lies
  uint64_t next_offset = 0;  // in that zone: where the next one goes; the zone's capacity where none fits
};
// The newest. kNotFound: not formatted; kNotSupported: ZenFS, or another version; kCorruption with the place.
Result<FoundSuperblock> ReadSuperblock(ZonedDevice& device);

// Writes superblocks behind the newest one. One thread at a time.
class SuperblockWriter {
 public:
  // `next_offset` as in FoundSuperblock; of a device without a superblock: zone 0, 0.
  SuperblockWriter(ZonedDevice& device, ZoneId zone, uint64_t next_offset);

  // Sets superblock.sequence to the next one and writes it; it counts when this returns OK. After an error nothing more
  // may be written.
  Status Write(Superblock& superblock);

 private:
  Status WriteSlot();

  ZonedDevice& device_;
  ZoneId zone_;
  uint64_t next_offset_;
  AlignedBuffer slot_;
};

std::string FormatUuid(const Uuid& uuid);  // "8a6e0804-2bd0-4672-b79d-d97027f9071a"
Uuid RandomUuid();

}  // namespace isozone
