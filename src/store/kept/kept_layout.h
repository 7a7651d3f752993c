// The format, version kKeptVersion, of the kept memory of a mount: a file of shared memory that outlives the process.
// It has what the process was given and the device does not have yet. docs/fault-model.md explains it to users.
//
//   KeptHeader             whose memory it is. Complete before the file has its name, never changed
//   KeptJournal            which bytes of the ring are records
//   KeptUnit, for each granule of unit memory: the unit that begins there, if one does
//   ring                   KeptHeader::ring_bytes bytes: records of the journal that are not durable yet, one after
//                          another, each a KeptRecord and its body, padded to 8 bytes
//   unit memory            pages; a unit takes whole granules, one after another
//
// Units. A unit is a piece of a file that is not on the device yet: the end of a log, as a rule. Its bytes are written
// first, then `published`, in one store: how many bytes there are, and their CRC. So whatever instruction the process
// dies at, the bytes of every append that has returned are there, and none of an append that had not is taken for more
// than it is. The other words of a unit change only while its sequence is odd, and there are no bytes in it meanwhile.
// A unit is given up only when the device has its bytes, and the record that says where is kept or durable.
//
// Records. A record is written into the ring before KeptJournal::end says so. It is given up, by a larger `begin`, when
// it is durable in every copy of the metadata.
//
// So at every instant the state of the file system that programs have seen is: what is on the device, then the records
// of the ring that follow, then the bytes of the units behind the end of each file.
//
// Everything is a little-endian word of 64 bits, and is stored and loaded as one. A reader believes nothing: it takes
// a file only if the header is that of this boot and of the last mount of this device, and if the device has all that
// was durable: one to which an older copy was restored has not. Of a unit or record it takes only what its CRC vouches
// for.
//
// Thread safety: plain types and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "insight/stats/page_layout.h"

namespace isozone {

inline constexpr uint64_t kKeptMagic = 0x5450454B5A4F5349;  // "ISOZKEPT" in memory
inline constexpr uint32_t kKeptVersion = 1;
inline constexpr uint64_t kKeptGranule = 16 * kKiB;  // bytes
inline constexpr uint64_t kKeptMemoryMin = 1 * kMiB;
inline constexpr uint64_t kKeptMemoryMax = 4 * kGiB;

struct KeptHeader {
  SharedFileHeader file;
  uint64_t mount_number;  // MetadataState::mount_number
  uint64_t ring_bytes;
  uint64_t granules;
  std::array<char, 40> uuid;     // of the file system, as text; zeros behind it
  std::array<char, 40> boot_id;  // /proc/sys/kernel/random/boot_id; zeros behind it
};

// Positions count all bytes that were ever put into the ring; a position modulo ring_bytes is a place in it.
struct KeptJournal {
  uint64_t begin;
  uint64_t end;
  uint64_t durable;  // the sequence of a record that the device has, with all before it
};

struct KeptRecord {
  uint64_t sequence;  // of the journal
  uint32_t length;    // bytes of the body
  uint32_t crc;       // of the body; starts from KeptRecordSeed
};

struct KeptUnit {
  uint64_t sequence;     // even while it is at rest; 0: never used
  uint64_t inode;        // 0: no unit begins here
  uint64_t file_offset;  // bytes of the file in front of its first byte
  uint64_t payload_at;   // bytes from the beginning of the unit to that byte
  uint64_t bytes;        // bytes of the unit
  uint64_t published;    // PackPublished
  std::array<uint64_t, 2> reserved;
};

// Packs how many bytes of a unit there are, and their CRC, which starts from KeptSeed.
constexpr uint64_t PackPublished(uint64_t length, uint32_t crc) { return length << 32U | crc; }
constexpr uint64_t PublishedLength(uint64_t published) { return published >> 32U; }
constexpr uint32_t PublishedCrc(uint64_t published) { return static_cast<uint32_t>(published); }

// The places of all parts of a file of `bytes` bytes, in bytes from its beginning.
struct KeptLayout {
  static constexpr uint64_t kJournal = sizeof(KeptHeader);
  static constexpr uint64_t kUnits = kJournal + sizeof(KeptJournal);

  explicit constexpr KeptLayout(uint64_t bytes)
      : ring_bytes(RoundDown(bytes / 16 < 2 * kMiB ? bytes / 16 : 2 * kMiB, 4 * kKiB)),
        granules((bytes - ring_bytes - kUnits - 4 * kKiB) / (kKeptGranule + sizeof(KeptUnit))),
        ring(kUnits + granules * sizeof(KeptUnit)),
        memory(RoundUp(ring + ring_bytes, 4 * kKiB)) {}

  uint64_t ring_bytes;
  uint64_t granules;
  uint64_t ring;    // where the ring begins
  uint64_t memory;  // where the first granule begins, at the beginning of a page
};

static_assert(sizeof(KeptHeader) == 144 && sizeof(KeptUnit) == 64 && sizeof(KeptRecord) == 16);
static_assert(KeptLayout::kUnits % sizeof(uint64_t) == 0);
static_assert(KeptLayout(kKeptMemoryMin).memory + KeptLayout(kKeptMemoryMin).granules * kKeptGranule <= kKeptMemoryMin);

}  // namespace isozone
