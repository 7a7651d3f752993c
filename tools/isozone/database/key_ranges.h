// KeyRanges: which keys the tables on a device hold, from the MANIFEST that the CURRENT beside them names
// (manifest_tables.h). Each MANIFEST is read once, when a table beside it is asked for.
//
// Thread safety: for one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isozone/database/manifest_tables.h"
#include "isozone/output/console.h"
#include "store/file_system.h"

namespace isozone::cli {

class KeyRanges {
 public:
  // A larger MANIFEST is not read, so that an answer takes a bounded time.
  static constexpr uint64_t kMostManifestBytes = uint64_t{128} << 20;

  // `file_system` outlives this.
  explicit KeyRanges(FileSystem& file_system) : file_system_(file_system) {}

  // Returns {"column_family", "level", "smallest_key", "largest_key"}; null if `path` is no live table of a database,
  // or its MANIFEST cannot be read or understood.
  Json TableJson(std::string_view path);
  // Returns that of the first of these names of a file that is a table.
  Json TableJson(std::span<const std::string> paths);

 private:
  const ManifestTables& TablesIn(const std::string& directory);

  FileSystem& file_system_;
  std::map<std::string, ManifestTables> databases_;  // by directory, without a slash at the end
};

}  // namespace isozone::cli
