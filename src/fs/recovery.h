// What recovery hands to the journal, beyond what everybody may see of it (journal.h, RecoverMetadata).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fs/journal.h"
#include "fs/metadata_reader.h"
#include "fs/superblock.h"

namespace isozone {

// One copy, as far as it could be read.
struct FoundCopy {
  Superblock superblock;
  std::vector<ZoneId> zones;  // in order; the last may be set aside only
  bool complete = false;      // its checkpoint is whole
  Status damage;              // what stopped the reader before the end
  MetadataReader::End end;
  uint64_t sequence = 0;        // of the last whole record
  uint64_t alone_sequence = 0;  // of the last record that was written when there was no other copy

  bool whole() const { return complete && damage.ok(); }
};

struct RecoveredMetadata::Position {
  std::vector<FoundCopy> copies;  // that are kept and go on, the one that counts first
  uint64_t generation = 0;        // the highest that was found
};

// The copies that are found, with what reading them gives, and of the one that counts the state. A follower keeps
// `reader` to go on with.
struct MetadataReading {
  RecoveredMetadata metadata;
  std::unique_ptr<MetadataReader> reader;
};
Result<MetadataReading> ReadMetadata(ZonedDevice& device);

// Applies one record of the journal; kCorruption from `reader`.
Status ApplyRecord(const MetadataReader& reader, const MetadataReader::Record& record, MetadataState& state);

// The zones that hold anything of files or of metadata, and up to where that certainly was written: bytes from the start
// of the zone, UINT64_MAX for zones of metadata, which are never finished early.
std::map<ZoneId, uint64_t> NamedZones(const DeviceGeometry& geometry, const MetadataState& state,
                                      std::span<const ZoneId> metadata_zones);

}  // namespace isozone
