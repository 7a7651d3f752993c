// PendingExtents: extents that were appended to a file and that the journal does not know yet. The file's sink adds
// them as its writes end, and publishes them at Sync and Close; the collector may do so before (unpublished.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/file/unpublished.h"

namespace isozone {

class PendingExtents final : public Unpublished {
 public:
  // Registers with the collector. `catalog` must outlive this.
  PendingExtents(Catalog& catalog, InodeId id, DataClass data);
  // Leaves space that the journal never learnt of to the handles of the file.
  ~PendingExtents();

  // Adds `extents`, which are written and in which the file goes on. `space` is the claim on them.
  void Add(std::span<const FileExtent> extents, SpaceClaim space);
  // Sets the class of what is published from now on.
  void SetDataClass(DataClass data);
  // Tells the journal of all that was added, which the caller has flushed. Returns what to sync to make that durable.
  // If the file was removed, leaves its space to its handles instead.
  Result<uint64_t> Publish();

 private:
  bool LiesIn(ZoneId zone) const override ISOZONE_REQUIRES(mu_);
  Status PublishFlushed(Catalog& catalog, uint64_t flushed) override ISOZONE_REQUIRES(catalog.namespace_mutex, mu_);

  DataClass data_ ISOZONE_GUARDED_BY(mu_);
  std::vector<FileExtent> extents_ ISOZONE_GUARDED_BY(mu_);  // in file order
  uint64_t taken_ ISOZONE_GUARDED_BY(mu_) = 0;               // bytes of added_ that are no longer in extents_
};

}  // namespace isozone
