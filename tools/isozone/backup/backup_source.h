// BackupSource: a backup that is read, to check or to restore it. Whoever reads it visits its directories and files in
// an order in which parents come first; the checksums of what was read are compared with the manifest.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "isozone/backup/manifest.h"

namespace isozone::cli {

class BackupSource {
 public:
  // Is told of all that is in a backup, in order.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    // Returns whether the content of `file` is needed. The checksum of `file` is set if the source knows it by then.
    virtual Result<bool> Wants(const BackupFile& file) = 0;
    virtual Status Begin(const BackupFile& file) = 0;
    virtual Status Append(std::span<const std::byte> data) = 0;
    virtual Status AppendHole(uint64_t bytes) = 0;
    // Ends the file, which has its checksum by now.
    virtual Status End(const BackupFile& file) = 0;
    // Returns whether a backup in a folder must have all names of each file, and all directories, which its manifest
    // also has.
    virtual bool NeedsAllNames() const { return false; }
  };

  virtual ~BackupSource() = default;
  // Returns the manifest, or null if it cannot be known before the files are read.
  virtual const Manifest* manifest() const = 0;
  // Calls `visit` for each file with content that is known before any is read, with roughly how many of its bytes are
  // in no hole. These are all files of a folder, and of an archive that is a file and not compressed.
  virtual void VisitSizes(const std::function<void(const BackupFile& file, uint64_t data)>& visit) const = 0;
  // Returns the manifest. kCorruption if the backup is damaged or not complete; kAborted after a signal.
  virtual Result<Manifest> Visit(Visitor& visitor) = 0;
};

// Opens the backup at `path`: "-" (an archive on standard input), an archive, a folder with backups (the newest
// counts), or one of these.
Result<std::unique_ptr<BackupSource>> OpenBackup(const std::string& path);

// Reads all of a backup and compares it with its manifest. Fails with kCorruption if they differ.
Result<Manifest> VerifyBackup(BackupSource& source);

}  // namespace isozone::cli
