// Where the space of a device has gone, for people: every byte of every zone belongs to exactly one part.
//
// A zone is cut from its beginning to its capacity. What was written (up to the write pointer) is live in files with a
// name, live without one, or dead; what was not written is free, or cannot be had for now:
//
//   |  named, by what the files are  |  unnamed  |  dead  |  finish padding  |  unwritten  |
//   0                                                    finished at    write pointer   capacity
//
// The pieces lie mixed in a zone; only their sizes are known. So the parts add up to the capacity of all zones whatever
// the figures of a zone are: figures that contradict each other, as those of a device in use may that were taken at
// different moments, are cut to what the zone can hold, in this order.
//
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/zone/lifetime.h"
#include "store/zone/zone_record.h"
#include "store/zone/zone_use.h"

namespace isozone {

// The kind of a file in RocksDB, as far as its names tell.
enum class FileGroup : uint8_t {
  kTables,  // *.sst, *.ldb
  kBlobs,   // *.blob
  kLogs,    // write-ahead logs and MANIFESTs
  kTrash,   // *.trash: deleted by RocksDB, which removes them at a limited rate
  kLinked,  // tables and blobs with more than one name: a checkpoint or a backup has them as well
  kOther,
};
inline constexpr int kFileGroupCount = 6;

// Returns the group of a file that has the names `paths`; kOther if there are none.
FileGroup FileGroupOf(std::span<const std::string> paths);

// One zone. Sizes are in bytes.
struct ZoneSpace {
  ZonePhase phase = ZonePhase::kEmpty;
  ZoneUse use = ZoneUse::kFree;
  Lifetime lifetime = Lifetime::kNotSet;
  bool sealed = false;  // its cohort is sealed: it takes no more data
  uint64_t capacity = 0;
  uint64_t written = 0;                              // the write pointer
  uint64_t live = 0;                                 // of files with and without a name
  std::array<uint64_t, kFileGroupCount> named = {};  // of files with a name, by FileGroup
  std::optional<uint64_t> finished_at = {};          // the write pointer before it was finished, where known
};

enum class SpacePart : uint8_t {
  // Live bytes. The first ones are in the order of FileGroup.
  kTables,
  kBlobs,
  kLogs,
  kTrash,
  kLinked,
  kOther,
  kUnnamed,  // belongs to no file yet, or to a deleted file that is still open
  // Dead.
  kDeadZones,   // in zones in which nothing lives
  kDeadLogs,    // beside what lives
  kDeadNotSet,  // beside what lives; this and the next ones by the lifetime of the zone, in the order of Lifetime
  kDeadNone,
  kDeadShort,
  kDeadMedium,
  kDeadLong,
  kDeadExtreme,
  kPadding,  // what a finish left unwritten, of zones in which something lives
  // Unwritten.
  kRestWriting,  // of zones that a writer has
  kRestIdle,     // of zones that the next writer of such data goes on with
  kRestSealed,   // of zones that nothing goes on with unless space is short
  kFree,         // empty zones
  // Kept.
  kReserved,  // empty zones that files do not get
  kMetadata,  // of Isozone
  kUnusable,  // what a device has lost, or a failed write has made unusable
};
inline constexpr int kSpacePartCount = static_cast<int>(SpacePart::kUnusable) + 1;

// Returns the name of a part for scripts, such as "dead-short".
std::string_view SpacePartName(SpacePart part);

// The description of a part for people who do not know Isozone.
struct SpacePartText {
  std::string_view title;    // a few words
  std::string_view meaning;  // one sentence: what this is
  std::string_view freed;    // what gives the space back, with command or option
};
const SpacePartText& DescribeSpacePart(SpacePart part);

struct SpaceShare {
  uint64_t bytes = 0;
  uint32_t zones = 0;  // in which this part is
};

struct SpaceAccount {
  std::array<SpaceShare, kSpacePartCount> parts;
  uint64_t capacity = 0;     // bytes of all zones, unusable ones too; the sum of the parts
  uint32_t zones = 0;        // all
  uint32_t in_use = 0;       // zones that hold files, live or dead
  uint32_t partly = 0;       // of these, the ones that are partly written
  uint64_t live_in_use = 0;  // bytes live in zones in use

  const SpaceShare& operator[](SpacePart part) const { return parts[static_cast<size_t>(part)]; }
  uint64_t live() const;      // bytes
  uint64_t dead() const;      // bytes; finish padding too, since both come back alike
  uint64_t writable() const;  // bytes that files can take now
};

// Returns the account of `zones`. `reserved` is how many bytes of empty zones files may not have. `block` is the block
// size: a zone's `live` may have been rounded up to it.
SpaceAccount AccountSpace(std::span<const ZoneSpace> zones, uint64_t reserved, uint32_t block);

// Returns what the account as a whole shows, such as that a small database lies in many zones, in lines for people.
// `max_active` is the device's limit of active zones, or 0.
std::vector<std::string> RemarksOn(const SpaceAccount& account, uint32_t max_active);

}  // namespace isozone
