// The manifest of a backup: what the backup holds, with sizes and checksums. It is written last, so that a backup
// without one is not complete.
//
//   {"format": "isozone-backup", "version": 1, "uuid": ..., "label": ..., "began": ..., "files": [
//      {"paths": ["/db", ...], "type": "directory", "modified": ...},
//      {"paths": ["/db/000012.sst", ...], "type": "data", "inode": ..., "size": ..., "modified": ..., "lifetime": ...,
//       "level": ..., "crc32c": ...}, ...], "crc32c": ...}
//
// Times are in seconds since 1970, sizes in bytes. The last `crc32c` is that of the compact text of all before it. In a
// path, every byte that is not printable ASCII, and the percent sign, is written as %XX. A file has all of its names.
// Directories come before what lies in them.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fs/file_system.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// The name of the manifest in an archive, and in the folder of a backup.
constexpr char kManifestName[] = "isozone-backup.json";
constexpr size_t kBackupChunk = 1 * kMiB;  // bytes that are copied at a time

struct BackupFile {
  std::vector<std::string> paths;  // all of its names, at least one, absolute
  bool is_directory = false;
  FileKind kind = FileKind::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;
  uint64_t inode = 0;
  uint64_t size = 0;        // bytes
  uint64_t modified_s = 0;  // seconds since 1970
  uint32_t crc32c = 0;      // of the content

  const std::string& path() const { return paths.front(); }
  // Whether `other` is the same file with the same content, as far as its attributes tell. Logs never are.
  bool IsUnchanged(const BackupFile& other) const;
};

struct Manifest {
  std::string uuid;  // of the file system
  std::string label;
  uint64_t began_s = 0;  // when the backup began, seconds since 1970
  std::vector<BackupFile> files;

  uint64_t TotalSize() const;
  uint64_t FileCount() const;  // without directories
  std::string Encode() const;
  // kCorruption, with what is wrong, for anything that Encode has not written.
  static Result<Manifest> Decode(std::string_view text);
};

// Whether `path` is absolute and normal, without "." and "..". A path of a backup names local files, so it must not lead
// anywhere else.
bool IsSafePath(std::string_view path);

Json EncodeBackupFile(const BackupFile& file);
Result<BackupFile> DecodeBackupFile(const Json& json);

}  // namespace isozone::cli
