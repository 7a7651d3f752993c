// BackupTarget: where a backup goes. Whoever makes a backup calls, as often as it takes until a consistent set of files
// is there: Begin, Append and End for files and directories, or Abandon in place of End. Finish makes it complete.
//
// DirectoryTarget. A folder holds numbered backups:
//
//   DIR/backup-000007/isozone-backup.json    the manifest
//   DIR/backup-000007/files/db/000012.sst    each file under its path on the device; symbolic links are such
//   DIR/backup-000008.partial/               a backup that is not complete
//
// A file that has not changed since the last backup is a hard link to what is there, and takes no space. So owners and
// permissions cannot be those of the device, which may have changed alone: the manifest has them, and only the owner of
// the backup's folder may enter it. Symbolic links that the local file system does not take are in the manifest only.
//
// A backup is written into its `.partial` folder, made durable, given its manifest, and renamed. A backup that was
// stopped leaves this folder, in which `journal` has a line for each file that is there in whole: the manifest's entry,
// behind the first line, which is the uuid of the file system. The next backup of the same file system continues there.
//
// A folder holds backups of one file system. Of what has such names, only complete backups, folders with a journal, and
// those in which the manifest has become `removed`, which comes first when a backup is removed, are ever touched. A
// backup is locked, shared, while it is read, and not removed meanwhile.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "isozone/backup/archive.h"
#include "isozone/backup/manifest.h"
#include "isozone/holes.h"

namespace isozone::cli {

class BackupTarget {
 public:
  virtual ~BackupTarget() = default;

  virtual Result<TargetRoom> Room() const = 0;
  // Returns whether the target can have the content of `file` without copying. If so, it has it then, and the checksum
  // of `file` is set.
  virtual Result<bool> Has(BackupFile& file) = 0;
  // Begins a directory, a symbolic link, or a file whose content follows. Replaces a file of the same name.
  virtual Status Begin(const BackupFile& file) = 0;
  virtual Status Append(std::span<const std::byte> data) = 0;
  virtual Status AppendHole(uint64_t bytes) = 0;
  // Ends what was begun. `file` has its checksum by now.
  virtual Status End(const BackupFile& file) = 0;
  // Gives up the file that was begun, whose content has gone.
  virtual Status Abandon() = 0;
  // Completes the backup. All `manifest.files` must be there. When it returns OK, the backup is durable.
  virtual Status Finish(const Manifest& manifest) = 0;
};

// Writes an archive to `descriptor`.
Result<std::unique_ptr<BackupTarget>> MakeArchiveTarget(int descriptor);

// Returns whether `folder` has the manifest of a backup. kPermissionDenied if that cannot be seen.
Result<bool> HasManifest(const std::string& folder);

// Returns the backups in a folder, from the oldest. kPermissionDenied if they cannot be seen.
Result<std::vector<std::string>> FindBackups(const std::string& folder);

// Makes a target that writes into `folder`, which it makes if there is none, and keeps the newest `keep` backups.
// `uuid` is that of the file system. kBusy if another process writes a backup into `folder`, kAlreadyExists if it holds
// backups of another file system.
Result<std::unique_ptr<BackupTarget>> MakeDirectoryTarget(const std::string& folder, const std::string& uuid,
                                                          uint32_t keep);

// Returns the folder with the files of a backup.
std::string FilesFolder(const std::string& backup);
// Reads the manifest. kNotFound if `backup` is not a complete backup.
Result<Manifest> ReadManifest(const std::string& backup);

}  // namespace isozone::cli
