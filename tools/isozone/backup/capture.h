// A consistent view of the files on a device, also beside a writer in another process.
//
// The metadata of a read-only mount is as of one moment, but a log that is open for writing has no size there: only its
// frames tell, and what its writer keeps in memory. Each log is looked at a little later, and so are extended
// attributes. So all is looked at several times, until one of these holds:
//
//   1. Two looks find the same logs, with the same sizes, and the same extended attributes. Then these have not changed
//      in between, where the moment of the second look's metadata lies, whatever has happened to other files. The
//      second look counts.
//   2. The second and the third look find what the first found, and at most logs have grown. Then between the first and
//      the third look nothing else has happened. The sizes of the second look count: what is captured is what a power
//      cut at that time could have left, because the last writes of a log may or may not survive one.
//
// Writes in place that come within one second are told by the extents of a file: they take new space.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "base/status.h"
#include "isozone/backup/manifest.h"

namespace isozone::cli {

// Returns the root directory, and all files and directories below it: directories first, then logs, small files with
// symbolic links, and data; without checksums. `file_system` must be mounted read-only. kBusy if a writer changes files
// too often for some seconds, kAborted after a signal.
Result<std::vector<BackupFile>> CaptureFiles(FileSystem& file_system);

// Returns all files that are there now, in order of inode. All are as of one moment, but for logs and extended
// attributes. A file that is removed while these are read is left out.
Result<std::vector<BackupFile>> LookAtFiles(const FileSystem& file_system);

}  // namespace isozone::cli
