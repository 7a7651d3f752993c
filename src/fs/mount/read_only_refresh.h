// ReadOnlyRefresh: keeps a read-only mount up to date with a writer in another process. When the writer has added
// records to the metadata, these are read and applied; only if the copy that is read was replaced, all of it is read
// again. Open files are brought up to date: logs grow, removed files are marked.
//
// The write pointers of the zones that copies are in, or begin in, show whether anything has changed. The superblocks
// show whether a copy was replaced, or is about to be.
//
// A file that the writer removed may lose its zone to a reset while this process reads it. So after each read the
// reader checks whether the file still exists, and fails if it does not, rather than return the bytes of another file.
//
// Thread safety: any thread may call any method.
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
  // `reading`: its state is that of `context`.
  ReadOnlyRefresh(MountContext& context, MetadataReading reading);

  // Brings state and open files up to date, if the writer has changed anything.
  Status Refresh();

  // Like Refresh, and returns kIoError if the file no longer exists.
  Status CheckExists(InodeId id);

  // Finds frames that were added to a log since it was last scanned.
  Status GrowLog(OpenFile& file);

  // The copies of the metadata, as of the last time that all of it was read.
  MetadataCopies Metadata() const;

 private:
  using Pointers = std::vector<std::pair<ZoneId, uint64_t>>;     // of zones
  using Generations = std::vector<std::pair<ZoneId, uint64_t>>;  // of the copies that begin there

  void Take(MetadataReading reading) ISOZONE_REQUIRES(mu_);
  Result<Pointers> ReadPointers() const ISOZONE_REQUIRES(mu_);
  // Whether no copy was replaced since all of the metadata was read.
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
