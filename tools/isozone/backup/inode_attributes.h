// The attributes that a backup has of a file beside its content: how they are read from a device, and written to one.
//
// Thread safety: none.
#pragma once

#include <string>

#include "base/status.h"
#include "isozone/backup/manifest.h"

namespace isozone::cli {

// Reads the attributes of a file, directory or symbolic link on `file_system`, of which `attributes` are known already.
Result<BackupAttributes> ReadAttributes(const FileSystem& file_system, const FileAttributes& attributes);

// Gives `path`, which is not followed, these attributes and no others. Writes only those that differ, since a file with
// the attributes that any file has takes no space for them.
Status WriteAttributes(FileSystem& file_system, const std::string& path, const BackupAttributes& attributes);

}  // namespace isozone::cli
