// What a ZenFS device holds, from its metadata. ZenFS is another file system for RocksDB on zoned devices; this reads
// version 2 of its format, and never writes it.
//
// The first three zones are for metadata, one of them at a time. Such a zone holds records, each beginning at a block:
//
//   CRC-32C of what follows, masked as in LevelDB : 4 | length : 4 | that many bytes
//
// The first record is the superblock (512 bytes). The zone whose superblock has the highest sequence counts. Each
// further record begins with a tag: a snapshot of all files, an update of one file (with the extents that are new), a
// file whose extents are replaced, the removal of a name, or the end of the zone. A file is a list of fields, each a
// tag and a value. An extent is a place on the device in bytes. All integers are little-endian, lengths inside of
// records varints.
//
// A file that is open for writing has an active extent, whose length is known from the write pointer of its zone. If
// the file is sparse (a log), each write has its length before it, in 8 bytes, and begins at a block. A power cut may
// tear the last one, so that its length leads behind the write pointer. ZenFS makes it an extent of this length.
//
// Nothing is believed before it is checked: extents lie in zones of files, behind no write pointer, from which a torn
// write is cut off; names are safe.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace isozone::cli {

constexpr uint32_t kZenFsMetadataZones = 3;
constexpr uint64_t kNoActiveExtent = ~uint64_t{0};

struct ZenFsSuperblock {
  static constexpr size_t kSize = 512;

  uint32_t sequence = 0;
  uint32_t block_size = 0;  // bytes
  uint32_t zone_size = 0;   // blocks
  uint32_t zone_count = 0;

  // Parses a record. kNotSupported for another version, kCorruption for anything else.
  static Result<ZenFsSuperblock> Decode(std::string_view record);
};

struct ZenFsExtent {
  uint64_t start = 0;   // bytes on the device
  uint64_t length = 0;  // bytes
};

struct ZenFsFile {
  uint64_t id = 0;
  std::vector<std::string> names;
  uint64_t size = 0;        // bytes
  uint64_t modified_s = 0;  // seconds since 1970
  uint32_t lifetime = 0;
  bool is_sparse = false;
  uint64_t active_start = kNoActiveExtent;
  std::vector<ZenFsExtent> extents;
};

// Returns the next record of `zone`, the bytes of a metadata zone up to its write pointer, at `offset`, and advances
// that to the record behind it. None at the end. kCorruption if a record is damaged.
Result<std::optional<std::string_view>> NextZenFsRecord(std::string_view zone, uint32_t block_size, uint64_t& offset);

// ZenFsFiles: the files as of the records that were applied.
class ZenFsFiles {
 public:
  enum class Applied { kGoOn, kEnd };

  // Applies the next record. kCorruption if it is not one that ZenFS writes.
  Result<Applied> Apply(std::string_view record);
  bool has_snapshot() const { return has_snapshot_; }
  // Returns the files by id.
  const std::map<uint64_t, ZenFsFile>& files() const { return files_; }

 private:
  Status ApplySnapshot(std::string_view data);
  Status ApplyUpdate(std::string_view data, bool replaces);
  Status ApplyDeletion(std::string_view data);

  std::map<uint64_t, ZenFsFile> files_;
  bool has_snapshot_ = false;
};

}  // namespace isozone::cli
