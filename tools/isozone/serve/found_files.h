// Files of a device with the zones that they lie in, for who looks for one.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <string>

#include "fs/file_system.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// {"files": [...], "more": whether there are more than `most`}: those whose path contains `text`, in order of inode, each
// as `isozone stat --json` has its attributes, with one path, and its zones. Takes time by the number of files; reads none.
Result<Json> FindFiles(FileSystem& file_system, const std::string& text, size_t most);

}  // namespace isozone::cli
