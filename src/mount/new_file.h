// New inodes: who owns them, and what is known of how a file will be written.
//
// FUSE passes on neither the hint that a program gives a file (F_SET_RW_HINT) nor what it does, so the lifetime and the
// class of its data follow from, in this order:
//   1. its name, where that says it all (fs/file_type.h): logs, MANIFESTs, small files
//   2. the name of the thread that creates it: RocksDB flushes in `rocksdb:high` and compacts in `rocksdb:low`
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "io/io_class.h"
#include "mount/fuse_view.h"
#include "mount/thread_name.h"

namespace isozone {

// The one who asks; in a directory with the set-group-id bit, of its group. `mode`: with the type of the inode.
Result<InodeOwner> OwnerOfNew(FuseView& view, fuse_req_t request, uint64_t directory, mode_t mode);

// What a file of this name will be, created by a thread with this job.
CreateOptions OptionsOfNew(std::string_view name, ThreadJob job);

// Creates a regular file, for the one who asks.
Result<std::shared_ptr<PositionalFile>> CreateFile(FuseView& view, fuse_req_t request, uint64_t directory,
                                                   std::string_view name, mode_t mode);

}  // namespace isozone
