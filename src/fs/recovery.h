// What recovery hands to the journal, beyond what everybody may see of it (journal.h, RecoverMetadata).
#pragma once

#include <map>
#include <span>
#include <utility>

#include "fs/batch_stream.h"
#include "fs/journal.h"
#include "fs/superblock.h"

namespace isozone {

struct RecoveredMetadata::Position {
  FoundSuperblock superblock;
  uint64_t next_checkpoint_batch = 0;
  StreamReader::End journal;
};

// The zones that hold anything of files or of metadata, and up to where that certainly was written: bytes from the start
// of the zone, UINT64_MAX for zones of metadata, which are never finished early.
std::map<ZoneId, uint64_t> NamedZones(const DeviceGeometry& geometry, const MetadataState& state,
                                      std::span<const std::pair<ZoneId, ZoneUse>> metadata_zones);

}  // namespace isozone
