// The superblock: the first block of a copy of the metadata, in its first zone. Behind it, in that zone and those
// linked from it, are a checkpoint and the journal (metadata_reader.h).
//
// A copy begins in one of the zones 0 to HomeZones(copies) - 1 by preference (store/zone/allocator/zone_reserves.h),
// which hold metadata and nothing else; if these cannot be written, in any zone. So whoever looks for copies reads the
// first block of these zones, and if that does not give as many copies as there should be, that of every zone that is
// written.
//
// A superblock never changes. A new copy has a higher generation, and a whole one that holds more records counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/format.h"

namespace isozone {

// Upper bounds of the numbers of copies and records. They are never reached, and counting on from there cannot wrap.
inline constexpr uint64_t kGenerationMax = uint64_t{1} << 62;
inline constexpr uint64_t kSequenceMax = uint64_t{1} << 62;

struct Superblock {
  uint32_t version = kFormatVersion;  // as which it was read; it is written as kFormatVersion
  Uuid uuid{};
  std::string label;        // up to 63 bytes
  uint32_t copies = 0;      // how many the file system keeps
  uint64_t generation = 0;  // of this copy
  uint64_t sequence = 0;    // sequence of the last record that its checkpoint contains
  ZoneId zone;              // where this superblock lies
  // The device that was formatted.
  uint32_t block_size = 0;
  uint32_t zone_count = 0;
  uint64_t zone_size = 0;
  uint64_t zone_capacity = 0;
};

// Returns the bytes that a superblock takes on this device.
uint64_t SuperblockSlot(const DeviceGeometry& geometry);

void EncodeSuperblock(const Superblock& superblock, std::span<std::byte> slot);
// Decodes and checks a superblock, everything in it against the geometry. kNotSupported for another version, or
// features that this one does not know; kInvalidArgument if it was written for a device of another geometry;
// kCorruption for anything else, also if it was not written to `zone`.
Result<Superblock> DecodeSuperblock(std::span<const std::byte> slot, const DeviceGeometry& geometry, ZoneId zone);

enum class DeviceContent : uint8_t {
  kEmpty,    // no zone that a file system would begin with is written, and nowhere is a superblock
  kIsozone,  // of whatever version
  kZenFs,
  kUnknown,  // written, by nobody we know
};
// Looks at the first block of the first zones, and if that says nothing, of all. Read errors are returned.
Result<DeviceContent> ProbeDevice(ZonedDevice& device);
inline constexpr uint32_t kProbedZones = 3;  // file systems begin with these: ZenFS has its metadata in three

// The first block of a zone, if it begins like a superblock of any version or cannot be read.
struct FoundSuperblock {
  ZoneId zone;
  Result<Superblock> superblock;
};
// Finds superblocks in the zones that copies begin in by preference or, `everywhere`, in all that are written; in
// order.
Result<std::vector<FoundSuperblock>> FindSuperblocks(ZonedDevice& device, bool everywhere);

std::string FormatUuid(const Uuid& uuid);  // "8a6e0804-2bd0-4672-b79d-d97027f9071a"
Uuid RandomUuid();

}  // namespace isozone
