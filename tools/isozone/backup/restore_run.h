// Restores a backup onto a device.
//
// All files are written below kRestoreFolder, synced, and read back to compare their checksums. When all are there, the
// symbolic link `complete` in that folder says so; its target tells which backup it is. What the device held before is
// removed, and the link becomes `moving`. Then the root directory gets the attributes of `files` in that folder, the
// files get their names, and the folder goes. If the device held nothing, `moving` comes at once. So a restore that was
// stopped leaves no file of the database under its name, and what the device held is there until the backup is. The
// next restore keeps what is there already in whole, if the backup is a folder, and begins anew for an archive. One
// that had come to `complete` or `moving` is only finished.
//
// Thread safety: none.
#pragma once

#include "base/status.h"
#include "isozone/backup/backup_source.h"

namespace isozone::cli {

enum class RestoreOnto : uint8_t {
  kEmpty,     // refuses a file system that holds files, with kNotEmpty
  kAnything,  // replaces the files; kNoSpace if both do not fit
};

// Restores onto `file_system`, which must be mounted for writing. Returns the manifest of what it holds then, durable.
Result<Manifest> RestoreBackup(BackupSource& source, FileSystem& file_system, RestoreOnto onto);

}  // namespace isozone::cli
