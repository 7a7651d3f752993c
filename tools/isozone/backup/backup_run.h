// Makes a backup: captures a consistent set of files, copies what the target does not have, and captures again if the
// writer in another process removed or changed a file before it was copied. What was copied before stays.
//
// Thread safety: none.
#pragma once

#include "base/status.h"
#include "isozone/backup/backup_target.h"

namespace isozone::cli {

struct BackupCounts {
  Manifest manifest;
  uint64_t copied_files = 0;  // of those in the manifest
  uint64_t copied_bytes = 0;
};

// Makes a backup of `file_system`, which must be mounted read-only. kAborted after a signal, kBusy if the files change
// too often, kCorruption if what is on the device is damaged.
Result<BackupCounts> MakeBackup(FileSystem& file_system, BackupTarget& target);

}  // namespace isozone::cli
