// The structures of the metadata on the device, format version 9. docs/format.md describes what they mean; nothing but
// the files beside this one that read and write them includes it. All fields are little-endian.
//
// Bytes of a device become one of these only for the code that checks them; everything else sees the types they are
// turned into (Superblock, BatchView) and only after every check.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/crc32c.h"
#include "base/units.h"

namespace isozone {

inline constexpr uint32_t kFormatVersion = 9;
// The oldest version that is read: its structures are the same, and it has fewer operations.
inline constexpr uint32_t kOldestVersionRead = 7;

using Uuid = std::array<uint8_t, 16>;

// Returns what the CRCs of the batches of a copy start from: the file system's uuid and the copy's generation. So
// whatever an earlier format or an earlier copy left on the device is never taken for it.
inline uint32_t ChecksumSeed(const Uuid& uuid, uint64_t generation) {
  return Crc32c(&generation, sizeof(generation), Crc32c(uuid.data(), uuid.size()));
}

// --- Superblock: the first max(4096, block size) bytes of a copy of the metadata; the header, then zeros
struct SuperblockHeader {
  static constexpr uint64_t kMagic = 0x00454E4F5A4F5349;  // "ISOZONE", NUL
  static constexpr uint64_t kSlotMin = 4096;              // bytes

  // These three fields lie here in every version of the format.
  uint64_t magic;
  uint32_t crc;  // of the whole slot, with this field as 0
  uint32_t version;

  Uuid uuid;
  uint64_t generation;    // of the copy: every one that is begun has a higher one
  uint32_t incompatible;  // bits of features that a reader must know; none in this version
  uint32_t copies;        // that the file system keeps

  // The device that was formatted.
  uint32_t block_size;  // bytes
  uint32_t zone_count;
  uint64_t zone_size;      // bytes
  uint64_t zone_capacity;  // bytes

  uint64_t sequence;  // of the last record that the checkpoint behind this block contains
  uint32_t zone;      // the zone that this block was written to
  uint32_t reserved0;

  std::array<char, 64> label;  // NUL-terminated
  std::array<uint8_t, 104> reserved;
};
static_assert(sizeof(SuperblockHeader) == 256 && std::is_trivially_copyable_v<SuperblockHeader>);
static_assert(offsetof(SuperblockHeader, crc) == 8 && offsetof(SuperblockHeader, version) == 12 &&
              offsetof(SuperblockHeader, uuid) == 16 && offsetof(SuperblockHeader, generation) == 32 &&
              offsetof(SuperblockHeader, incompatible) == 40 && offsetof(SuperblockHeader, copies) == 44 &&
              offsetof(SuperblockHeader, block_size) == 48 && offsetof(SuperblockHeader, zone_count) == 52 &&
              offsetof(SuperblockHeader, zone_size) == 56 && offsetof(SuperblockHeader, zone_capacity) == 64 &&
              offsetof(SuperblockHeader, sequence) == 72 && offsetof(SuperblockHeader, zone) == 80 &&
              offsetof(SuperblockHeader, label) == 88);

// --- Batch: header, payload, zeros up to a whole block; one device write
struct BatchHeader {
  static constexpr uint32_t kMagic = 0x424D5A49;   // "IZMB"
  static constexpr uint64_t kMaxBytes = 1 * kMiB;  // of a whole batch
  static constexpr uint32_t kNoZone = UINT32_MAX;

  uint32_t magic;
  uint32_t header_crc;      // of the fields behind this one, from ChecksumSeed
  uint32_t payload_crc;     // of the payload, from ChecksumSeed
  uint32_t payload_length;  // bytes
  uint64_t number;          // each is one more than that of the batch before it in its copy
  uint64_t first_sequence;  // of the first record that begins here (or would)
  uint32_t record_count;    // records that begin here
  uint32_t lead_length;     // bytes at the start of the payload that belong to a record begun in an earlier batch
  uint32_t next_zone;       // where the copy goes on once this zone is full; kNoZone: that is not known yet
  uint8_t kind;             // BatchKind
  uint8_t copies;           // the number of copies that were written when this batch was
  std::array<uint8_t, 18> reserved;
};
static_assert(sizeof(BatchHeader) == 64 && std::is_trivially_copyable_v<BatchHeader>);
static_assert(offsetof(BatchHeader, header_crc) == 4 && offsetof(BatchHeader, payload_crc) == 8 &&
              offsetof(BatchHeader, payload_length) == 12 && offsetof(BatchHeader, number) == 16 &&
              offsetof(BatchHeader, first_sequence) == 24 && offsetof(BatchHeader, record_count) == 32 &&
              offsetof(BatchHeader, lead_length) == 36 && offsetof(BatchHeader, next_zone) == 40 &&
              offsetof(BatchHeader, kind) == 44 && offsetof(BatchHeader, copies) == 45);

// A record in a payload is the length of its body (4 bytes) and the body: metadata_codec.h.
inline constexpr uint64_t kRecordPrefix = 4;

}  // namespace isozone
