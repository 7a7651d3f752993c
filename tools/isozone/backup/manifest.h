// The manifest of a backup: what the backup holds, with sizes and checksums. It is written last, so that a backup
// without one is not complete.
//
//   {"format": "isozone-backup", "version": 1, "uuid": ..., "label": ..., "began": ..., "root": {a directory},
//    "files": [
//      {"paths": ["/db", ...], "type": "directory", "modified": ..., ...},
//      {"paths": ["/db/current", ...], "type": "symlink", "target": ..., ...},
//      {"paths": ["/db/000012.sst", ...], "type": "data", "inode": ..., "size": ..., "modified": ..., "lifetime": ...,
//       "level": ..., "extents": ..., "crc32c": ..., ...}, ...], "crc32c": ...}
//
// Each also has "modified_ns", "changed", "changed_ns", "mode" (octal), "user" and "group", and, if there are any,
// "xattrs": {name: value, ...}. Times are in seconds since 1970 and nanoseconds, sizes in bytes. `extents` tells one
// place of the content on the device from another. The last `crc32c` is that of the compact text of all before it. In a
// path, a target and an extended attribute, every byte that is not printable ASCII, and the percent sign, is written as
// %XX. A file has all of its names. Directories come before what lies in them.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isozone/output/console.h"
#include "store/file_system.h"

namespace isozone::cli {

// The name of the manifest in an archive, and in the folder of a backup.
constexpr char kManifestName[] = "isozone-backup.json";
// The directory on a device that a restore writes into until all files are there.
constexpr char kRestoreFolder[] = "/.isozone-restore";
constexpr size_t kMaxManifest = 512 * kMiB;  // bytes; about a million files
constexpr size_t kBackupChunk = 1 * kMiB;    // bytes that are copied at a time

// The attributes of a file, directory or symbolic link (store/inode_files.h).
struct BackupAttributes {
  uint32_t mode = 0644;  // permission bits
  uint32_t user = 0;
  uint32_t group = 0;
  FileTime modified;
  std::map<std::string, std::string> xattrs;
  bool operator==(const BackupAttributes&) const = default;
};

struct BackupFile {
  std::vector<std::string> paths;  // all of its names, at least one, absolute
  bool is_directory = false;
  std::string target;  // of a symbolic link, which has no content; empty for all others
  BackupAttributes attributes;
  FileTime changed;  // the inode itself
  FileKind kind = FileKind::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;
  uint64_t inode = 0;
  uint64_t size = 0;        // bytes
  uint32_t extents_id = 0;  // tells one place of the content from another; equal for equal extents
  uint32_t crc32c = 0;      // of the content
  ExtentList extents;       // where the content lies, if this was captured on a device; not in the manifest

  const std::string& path() const { return paths.front(); }
  bool is_symlink() const { return !target.empty(); }
  bool has_content() const { return !is_directory && !is_symlink(); }
  // Returns whether any write since `seen_s`, when this was seen, must have changed the times of this. Some writes have
  // times in whole seconds.
  bool IsSettled(uint64_t seen_s) const;
  // Returns whether `later` is this file with the content that this had at `seen_s`. What GC has moved meanwhile may
  // count as changed.
  bool HasContentOf(const BackupFile& later, uint64_t seen_s) const;
  // Returns whether `later` begins with the content that this had, because all of it still lies where it lay: what is
  // written over a file takes new space. Both must have been captured.
  bool IsBeginningOf(const BackupFile& later) const;
};

struct Manifest {
  std::string uuid;  // of the file system
  std::string label;
  uint64_t began_s = 0;  // when the backup began, seconds since 1970
  BackupFile root;       // the root directory, whose path no file has
  std::vector<BackupFile> files;

  uint64_t TotalSize() const;
  uint64_t FileCount() const;  // with symbolic links, without directories
  std::string Encode() const;
  // Parses the text. kCorruption, with what is wrong, for anything that Encode has not written.
  static Result<Manifest> Decode(std::string_view text);
};

// Returns whether `path` is absolute and normal, without "." and "..". A path of a backup names local files, so it must
// not lead anywhere else.
bool IsSafePath(std::string_view path);
// Returns whether `path` is, or lies below, a name that backups use for themselves. No file in a backup has such a
// path.
bool IsReservedPath(std::string_view path);

Json EncodeBackupFile(const BackupFile& file);
Result<BackupFile> DecodeBackupFile(const Json& json);

}  // namespace isozone::cli
