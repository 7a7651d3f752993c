// ReadOnlyRefresh: keeps a read-only mount up to date with a writer in another process. Where the writer's metadata has
// moved on, the records that were added are read and applied; only when the copy that is read was replaced is all of it
// read again. Open files are brought up to date: logs grow, removed files are marked.
//
// Whether anything has changed is told by the write pointers of the zones that copies are in or begin in; whether a copy
// was replaced, or is about to be, by the superblocks.
//
// A file that the writer removed may lose its zone to a reset while it is being read here; reads therefore look
// afterwards whether the file still exists, and fail if not, rather than return another file's bytes.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "fs/file/mount_context.h"
#include "fs/metadata/recovery.h"

namespace isozone {

class ReadOnlyRefresh {
 public:
  // `reading`: whose state is that of `context`.
  ReadOnlyRefresh(MountContext& context, MetadataReading reading);

  // Brings state and open files up to date, if the writer has changed anything.
  Status Refresh();

  // As Refresh, then kIoError if the file no longer exists.
  Status CheckExists(InodeId id);

  // Finds frames that were added to a log since it was last scanned.
  Status GrowLog(OpenFile& file);

  // The copies of the metadata, as they were when all was read last.
  MetadataCopies Metadata() const;

 private:
  using Pointers = std::vector<std::pair<ZoneId, uint64_t>>;     // of zones
  using Generations = std::vector<std::pair<ZoneId, uint64_t>>;  // of the copies that begin there

  void Take(MetadataReading reading) ISOZONE_REQUIRES(mu_);
  Result<Pointers> ReadPointers() const ISOZONE_REQUIRES(mu_);
  // Whether no copy was replaced since all was read.
  Result<bool> SameCopies() ISOZONE_REQUIRES(mu_);
  // Applies the records that were added.
  Status GoOn() ISOZONE_REQUIRES(mu_);
  Status ReadAll() ISOZONE_REQUIRES(mu_);
  Status RefreshOpenFiles() ISOZONE_REQUIRES(mu_);

  MountContext& context_;
  mutable Mutex mu_;  // one refresh at a time; taken before the namespace mutex
  std::unique_ptr<MetadataReader> reader_ ISOZONE_GUARDED_BY(mu_);
  std::vector<MetadataCopy> copies_ ISOZONE_GUARDED_BY(mu_);
  uint32_t copies_wanted_ ISOZONE_GUARDED_BY(mu_) = 0;
  Pointers seen_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
