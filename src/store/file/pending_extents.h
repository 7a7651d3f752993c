// PendingExtents: what was appended to a file and the journal does not know yet. A file's sink adds to it as its writes
// end, and publishes it at Sync and Close; the collector may do so before (unpublished.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/file/unpublished.h"

namespace isozone {

class PendingExtents final : public Unpublished {
 public:
  // Known to the collector from here on. `context` outlives this.
  PendingExtents(MountContext& context, InodeId id, DataClass data);
  // Space that the journal never learnt of is left to the handles of the file.
  ~PendingExtents();

  // The file goes on in `extents`, which are written; `space` is the claim on them.
  void Add(std::span<const FileExtent> extents, SpaceClaim space);
  // Of what is published from here on.
  void SetDataClass(DataClass data);
  // Tells the journal of all that was added; the caller has flushed it. Returns what to sync so that it is durable.
  // Where the file was removed, its space is left to its handles.
  Result<uint64_t> Publish();

 private:
  bool LiesIn(ZoneId zone) const override ISOZONE_REQUIRES(mu_);
  Status PublishFlushed(MountContext& context, uint64_t flushed) override
      ISOZONE_REQUIRES(context.namespace_mutex, mu_);

  DataClass data_ ISOZONE_GUARDED_BY(mu_);
  std::vector<FileExtent> extents_ ISOZONE_GUARDED_BY(mu_);  // in file order
  uint64_t taken_ ISOZONE_GUARDED_BY(mu_) = 0;               // of added_, bytes that are no longer in extents_
};

}  // namespace isozone
