// Files of a device with the zones that they lie in, for who looks for one.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <cstdint>
#include <string>

#include "isozone/output/console.h"
#include "store/file_system.h"

namespace isozone::cli {

// Whether the keys of tables are told (key_ranges.h), for which the MANIFESTs beside them are read.
enum class ShowKeys : bool { kNo, kYes };

// Returns {"files": [...], "more": whether there are more than `most`}: the files whose path, or its text
// (base/byte_text.h), contains `text`, in order of inode. Each is as `isozone stat --json` has its attributes, with one
// path, its zones, and "table" by KeyRanges::TableJson. Takes time by the number of files, and reads none of them.
Result<Json> FindFiles(FileSystem& file_system, const std::string& text, size_t most, ShowKeys keys);
// Returns {"zone": {...}, "files": [...]}: a zone and the files in it, each with "table" by KeyRanges::TableJson.
// kInvalidArgument if there is no such zone.
Result<Json> FilesInZone(FileSystem& file_system, uint32_t zone, ShowKeys keys);

}  // namespace isozone::cli
