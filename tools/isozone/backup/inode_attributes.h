// What a backup has of a file beside its content: read from a device, and given to a file on one.
//
// Thread safety: none.
#pragma once

#include <string>

#include "base/status.h"
#include "isozone/backup/manifest.h"

namespace isozone::cli {

// `attributes`: of a file, directory or symbolic link on `file_system`.
Result<BackupAttributes> ReadAttributes(const FileSystem& file_system, const FileAttributes& attributes);

// Gives `path`, which is not followed, these attributes and no others. What is so already is not written: a file with
// the attributes that any file has takes no space for them.
Status WriteAttributes(FileSystem& file_system, const std::string& path, const BackupAttributes& attributes);

}  // namespace isozone::cli
