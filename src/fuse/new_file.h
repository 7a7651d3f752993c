// New inodes: who owns them, and what is known of how a file will be written.
//
// FUSE passes on neither the hint that a program gives a file (F_SET_RW_HINT) nor what the program does, so the
// lifetime of a file's data follows from, in this order:
//   1. its name, where that says it all (store/file_type.h): logs, MANIFESTs, small files
//   2. of tables, the hint: RocksDB 8 and later give one to each table, by its level. (RocksDB 7 tries, and the kernel
//      refuses its call.) The kernel keeps it, and is asked once, at the first write to the new file (hint_reader.h):
//      programs give the hint between open(2) and that
//   3. of tables, the name of the thread that creates it: RocksDB flushes in `rocksdb:high` and compacts in
//      `rocksdb:low`
// and the class of its data from the name and the thread alone.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "fuse/fuse_view.h"
#include "fuse/thread_name.h"
#include "store/io/io_class.h"

namespace isozone {

// Returns the owner of a new inode: the one who asks. In a directory with the set-group-id bit, its group is the
// directory's. `mode` includes the type of the inode.
Result<InodeOwner> OwnerOfNew(FuseView& view, fuse_req_t request, uint64_t directory, mode_t mode);

// Returns whether a hint says more of a file with this name than the name does, as for a table.
bool MayHaveHint(std::string_view name);
// Returns what a hint (RWH_WRITE_LIFE_*) makes of the lifetime of such a file; empty if it says nothing.
std::optional<Lifetime> LifetimeByHint(uint64_t hint);
// Returns the options of a new file with this name that a thread with this job creates, as long as there is no hint.
CreateOptions OptionsOfNew(std::string_view name, ThreadJob job);

// Creates a regular file for the one who asks.
Result<std::shared_ptr<PositionalFile>> CreateFile(FuseView& view, fuse_req_t request, uint64_t directory,
                                                   std::string_view name, mode_t mode);

}  // namespace isozone
