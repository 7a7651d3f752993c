// Recovery: finds a file system's metadata on its device. recovery.cc says which copy counts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_reader.h"
#include "store/metadata/superblock.h"

namespace isozone {

// A copy of the metadata, as recovery found it.
struct MetadataCopy {
  enum class State : uint8_t {
    kWhole,
    kBehind,      // whole, but lacks records that were not acknowledged: normal after a power cut
    kUnfinished,  // was being written: normal after a power cut
    kReplaced,    // whole, but another has taken its place
    kDamaged,
  };
  ZoneId head;
  uint64_t generation = 0;
  std::vector<ZoneId> zones;
  State state = State::kWhole;
  uint64_t sequence = 0;  // sequence of its last record
  std::string text;       // what is wrong with it, for users
};

// The metadata that was found on a device.
struct RecoveredMetadata {
  MetadataState state;
  std::string label;
  std::string uuid;
  uint64_t sequence = 0;  // sequence of the last record
  uint64_t checkpoint_inodes = 0;
  uint64_t journal_records = 0;
  bool torn_tail = false;         // a torn batch at the end: normal after a power cut
  std::vector<ZoneId> zones;      // zones that hold metadata which is still needed
  std::set<ZoneId> behind_zones;  // zones that, according to a copy which is behind, hold files
  uint32_t copies_wanted = 0;
  std::vector<MetadataCopy> copies;  // what was found of them
  // OK: nothing that was acknowledged is missing. Otherwise why something may be, so that nothing may be written unless
  // the user says so: what only a lost copy names would be overwritten.
  Status newest;
  // The position at which writing continues; opaque here.
  struct Position;
  std::shared_ptr<const Position> position;

  uint32_t whole_copies() const;
  // Returns whether a copy is of an older version of the format. It must be written anew before it gets records of this
  // one.
  bool has_older_version() const;
};

// Reads and replays the metadata, and changes nothing. kNotFound if the device is not formatted; kNotSupported for
// ZenFS or another version; kCorruption. Works beside a writer in another process: if it replaces copies meanwhile,
// reading starts over.
Result<RecoveredMetadata> RecoverMetadata(ZonedDevice& device);

// Erases the copies of the metadata that no longer count, as far as a reader can find them, before records are written
// that they lack. `is_named` returns whether a zone holds files.
void EraseReplaced(ZonedDevice& device, const RecoveredMetadata& recovered,
                   const std::function<bool(ZoneId)>& is_named);

// --- For users that continue from there: the journal, and a read-only mount ---

// One copy, as far as it could be read.
struct FoundCopy {
  Superblock superblock;
  std::vector<ZoneId> zones;  // in order; the last one may be only reserved
  bool complete = false;      // its checkpoint is complete
  Status damage;              // what stopped the reader before the end
  MetadataReader::End end;
  bool joined = false;          // it has become one of the copies that get every record
  bool has_all = false;         // everything that was acknowledged: no other copy can be newer
  uint64_t sequence = 0;        // sequence of the last whole record
  uint64_t alone_sequence = 0;  // sequence of the last record that was written while there was no other copy

  bool whole() const { return complete && damage.ok(); }
};

struct RecoveredMetadata::Position {
  std::vector<FoundCopy> copies;  // the copies that are kept and continue; the one that counts comes first
  uint64_t generation = 0;        // the highest that was found
};

// The copies that were found, what reading them gave, and the state of the one that counts. A read-only mount keeps
// `reader` to continue reading.
struct MetadataReading {
  RecoveredMetadata metadata;
  std::unique_ptr<MetadataReader> reader;
};
Result<MetadataReading> ReadMetadata(ZonedDevice& device);

// Returns the zones that hold anything of files or of metadata, each with the end of what was certainly written: bytes
// from the start of the zone, or UINT64_MAX for zones of metadata, which are never finished early.
std::map<ZoneId, uint64_t> NamedZones(const DeviceGeometry& geometry, const MetadataState& state,
                                      std::span<const ZoneId> metadata_zones);

}  // namespace isozone
