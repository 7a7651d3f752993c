// Following: a read-only mount beside a writer in another process. The writer's metadata is read again whenever its
// zones have moved on, and open files are brought up to date: logs grow, removed files are marked.
//
// A file that the writer removed may lose its zone to a reset while it is being read here; reads therefore look
// afterwards whether the file still exists, and fail if not, rather than return another file's bytes.
//
// Thread safety: any thread.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "fs/core.h"

namespace isozone {

class Follower {
 public:
  Follower(FsCore& core, std::vector<std::pair<ZoneId, ZoneUse>> metadata_zones);

  // Brings state and open files up to date, if the writer has changed anything.
  Status Refresh();

  // As Refresh, then kIoError if the file no longer exists.
  Status CheckExists(InodeId id);

  // Finds frames that were added to a log since it was last scanned.
  Status GrowLog(OpenFile& file);

 private:
  using Signature = std::vector<std::pair<ZoneId, uint64_t>>;

  Result<Signature> TakeSignature(std::span<const ZoneId> zones) const;
  Status RefreshOpenFiles() ISOZONE_REQUIRES(mu_);

  FsCore& core_;
  Mutex mu_;  // one refresh at a time; taken before the namespace mutex
  std::vector<ZoneId> zones_ ISOZONE_GUARDED_BY(mu_);
  Signature seen_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
