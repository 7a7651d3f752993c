// ManifestTables: the live tables of a database with their levels and key ranges, from the content of its MANIFEST.
// RocksDB itself has them there, so they are known of every database, even of one at rest, and at no cost to it.
//
// A MANIFEST is a log of *edits*, the first of which hold all that there was when the log began. Blocks of kBlockBytes
// hold records, none of which crosses the end of a block; a rest that is too short for a head is zeros:
//
//   record   masked CRC-32C of type and content : 4 | length : 2 | type : 1 | content
//   type     0 nothing follows, 1 a whole edit, 2 the first part of one, 3 another part, 4 the last part
//
// An edit is a sequence of fields, each a tag and what the tag says follows. Of importance are the tables that an edit
// adds and removes, and the column family that it is of. Tags from 2^13 on may be skipped by those who do not know
// them, with a length in front. Any other unknown tag ends the reading, and no table counts as known: what it changes
// is not known either.
//
// Nothing in a MANIFEST is believed: any bytes give some tables, or none. It ends at a record whose checksum is wrong.
// At most kMostKeyBytes of a key are kept.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

namespace isozone::cli {

// The beginning of a user's key.
struct TableKey {
  std::string bytes;
  bool cut = false;  // the key is longer
  bool operator==(const TableKey&) const = default;

  // Returns the key for people: itself if it is printable ASCII, else 0x and hexadecimal digits; with ... if it is cut.
  std::string Text() const;
};

struct ManifestTable {
  uint32_t column_family = 0;
  uint32_t level = 0;
  TableKey smallest;
  TableKey largest;
};

class ManifestTables {
 public:
  static constexpr size_t kBlockBytes = 32768;
  static constexpr size_t kMostKeyBytes = 48;

  // Adds the next block; only the last one may be shorter. Returns whether what follows can be of use.
  bool AddBlock(std::span<const std::byte> block);

  // Returns the tables by file number.
  const std::unordered_map<uint64_t, ManifestTable>& tables() const { return tables_; }
  // Returns the name, which a MANIFEST does not have for "default", or the number if the name is not known.
  std::string ColumnFamilyName(uint32_t column_family) const;

 private:
  bool AddRecord(uint8_t type, std::span<const std::byte> content);
  bool Apply(std::span<const std::byte> bytes);
  void Drop(uint32_t column_family);

  std::unordered_map<uint64_t, ManifestTable> tables_;
  std::map<uint32_t, std::string> column_families_;
  std::optional<std::string> parts_;  // begun; of an edit that takes several records
};

}  // namespace isozone::cli
