// The live map as one file that needs no server: what a device holds now, with its files.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <string>

#include "store/file_system.h"

namespace isozone::cli {

// Returns the map of `files`, which must be mounted read-only. It has at most kMostStillFiles files.
inline constexpr size_t kMostStillFiles = 20'000;
Result<std::string> StillMapHtml(FileSystem& files);

}  // namespace isozone::cli
