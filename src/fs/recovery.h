// What recovery hands to the journal, beyond what everybody may see of it (journal.h, RecoverMetadata).
#pragma once

#include "fs/batch_stream.h"
#include "fs/journal.h"
#include "fs/superblock.h"

namespace isozone {

struct RecoveredMetadata::Position {
  FoundSuperblock superblock;
  uint64_t next_checkpoint_batch = 0;
  StreamReader::End journal;
};

}  // namespace isozone
