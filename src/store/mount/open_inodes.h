// OpenInodes: the positional files of a mount that are open, by inode. All opens of an inode share a SharedFile. The
// last of them gives what is in memory to the device, which takes time. Whoever opens the inode meanwhile waits for
// that, so that a file never has two writers. So does who asks for its attributes or sets them, since the size and the
// times are those of the last write.
//
// Locks: that of the registry is held for look-ups only, and never together with another.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "store/metadata/inode_id.h"
#include "store/mount/file_opener.h"
#include "store/mount/shared_file.h"

namespace isozone {

class OpenInodes : public std::enable_shared_from_this<OpenInodes> {
 public:
  // `files` outlives the mount.
  OpenInodes(std::shared_ptr<MountContext> context, FileOpener& files) : services_(std::move(context), files) {}

  // Returns the file of `id`, which is the inode of a file, and opens it where it is not open.
  Result<std::shared_ptr<SharedFile>> Open(InodeId id) ISOZONE_EXCLUDES(mu_);
  // Returns the file of `id`; null: it is not open. Waits while it is being opened or closed.
  std::shared_ptr<SharedFile> Find(InodeId id) ISOZONE_EXCLUDES(mu_);
  // Closes all files; the mount ends. Returns the first error.
  Status DetachAll() ISOZONE_EXCLUDES(mu_);

 private:
  std::shared_ptr<SharedFile> Await(InodeId id) ISOZONE_REQUIRES(mu_);
  Result<std::unique_ptr<SharedFile>> Make(InodeId id) ISOZONE_EXCLUDES(mu_);
  void Remove(InodeId id) ISOZONE_EXCLUDES(mu_);

  PositionalServices services_;
  Mutex mu_;
  CondVar changed_;
  // Where a pointer is expired, the file is being opened or closed.
  std::unordered_map<InodeId, std::weak_ptr<SharedFile>> files_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
