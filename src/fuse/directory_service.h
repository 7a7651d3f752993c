// ServeDirectory: a mounted file system of Isozone as a directory of this machine, from mounting it to its end.
//
// The end. The directory is unmounted by umount(8), or a signal comes, which unmounts it here: the kernel hands over
// what it holds of files, and open ones are closed. Then everything that programs wrote is in the file system, and its
// Unmount makes it durable. Programs that still have files open get ENOTCONN from then on. A process that is killed
// loses what was not synced, as in a power cut, and leaves a dead mount (mount_directory.h).
//
// Thread safety: one call at a time and directory.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "fuse/end_of_service.h"
#include "fuse/fuse_options.h"
#include "fuse/hint_reader.h"
#include "store/file_system.h"
#include "store/inode_files.h"

namespace isozone {

struct DirectoryService {
  std::string directory;  // as PrepareDirectory gave it
  std::string source;     // the URI of the device, for people and mount(8)
  FuseOptions options;
  HintReader* hints = nullptr;  // null: programs that say how long their files will live are not heard
};

// Serves `file_system`, whose inodes are `inodes`, until the end. `ready` is called once the directory can be used.
Status ServeDirectory(FileSystem& file_system, InodeFiles& inodes, const DirectoryService& service, EndOfService& end,
                      const std::function<void()>& ready);

}  // namespace isozone
