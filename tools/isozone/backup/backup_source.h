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
  // What is done with a backup.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    // Whether the content of `file` is needed. Its checksum is set if the source knows it by then.
    virtual Result<bool> Wants(const BackupFile& file) = 0;
    virtual Status Begin(const BackupFile& file) = 0;
    virtual Status Append(std::span<const std::byte> data) = 0;
    virtual Status AppendHole(uint64_t bytes) = 0;
    // `file`: with its checksum.
    virtual Status End(const BackupFile& file) = 0;
    // Whether a folder must have all names of each file, and all directories, which its manifest also knows.
    virtual bool NeedsAllNames() const { return false; }
  };

  virtual ~BackupSource() = default;
  // The manifest, if it can be known before the files are read.
  virtual const Manifest* manifest() const = 0;
  // Calls `visit` for each file with content that is known before any is read, with its bytes that are in no hole,
  // roughly: all files of a folder, and of an archive in a file that is not compressed.
  virtual void VisitSizes(const std::function<void(const BackupFile& file, uint64_t data)>& visit) const = 0;
  // Returns the manifest. kCorruption if the backup is damaged or not complete; kAborted after a signal.
  virtual Result<Manifest> Visit(Visitor& visitor) = 0;
};

// `path`: "-" (an archive on standard input), an archive, a folder with backups (the newest counts), or one of these.
Result<std::unique_ptr<BackupSource>> OpenBackup(const std::string& path);

// Reads all of a backup and compares it with its manifest. kCorruption.
Result<Manifest> VerifyBackup(BackupSource& source);

}  // namespace isozone::cli
