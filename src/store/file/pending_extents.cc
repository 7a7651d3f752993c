#include "store/file/pending_extents.h"

#include <algorithm>
#include <utility>

#include "store/extents.h"
#include "store/file/file_space.h"

namespace isozone {

PendingExtents::PendingExtents(Catalog& catalog, InodeId id, DataClass data) : Unpublished(catalog, id), data_(data) {
  Register();
}

PendingExtents::~PendingExtents() {
  const MutexLock names(catalog_.namespace_mutex);
  Unregister();
  const MutexLock lock(mu_);
  catalog_.LeaveToHandles(id_, std::move(space_));
}

void PendingExtents::Add(std::span<const FileExtent> extents, SpaceClaim space) {
  const MutexLock lock(mu_);
  space_.Merge(std::move(space));
  for (const FileExtent& extent : extents) {
    AppendExtent(extents_, extent, catalog_.geometry.zone_size);
    added_ += extent.length;
  }
}

void PendingExtents::SetDataClass(DataClass data) {
  const MutexLock lock(mu_);
  data_ = data;
}

Result<uint64_t> PendingExtents::Publish() {
  const MutexLock names(catalog_.namespace_mutex);
  const MutexLock lock(mu_);
  if (catalog_.state.Find(id_) == nullptr) {
    catalog_.LeaveToHandles(id_, std::move(space_));
    extents_.clear();
    taken_ = added_;
  }
  ISOZONE_RETURN_IF_ERROR(PublishFlushed(catalog_, added_));
  // If nothing was left to publish, what was published before has an earlier number, and so has the removal of the
  // file.
  return catalog_.journal->last_sequence();
}

Status PendingExtents::PublishFlushed(Catalog& catalog, uint64_t flushed) {
  const Inode* inode = catalog.state.Find(id_);
  // Its sink may have published this meanwhile, and more than this.
  if (flushed <= taken_ || inode == nullptr) return Status::Ok();
  const uint64_t bytes = flushed - taken_;
  const uint64_t end = extents_.front().file_offset + bytes;
  std::vector<MetadataOp> ops;
  if (inode->lifetime != data_.lifetime || inode->level != data_.level) {
    ops.emplace_back(SetAttributes{id_, data_.lifetime, catalog.TimeOf(*inode), data_.level});
  }
  const std::vector<FileExtent> first = CutExtents(extents_, end);
  ops.emplace_back(AppendExtents{id_, inode->extents.size(), first, catalog.TimeOf(*inode)});
  ISOZONE_RETURN_IF_ERROR(catalog.Commit(ops).status());
  space_.Split(SpaceOf(catalog.geometry, first)).ToMetadata();
  taken_ += bytes;
  extents_ = ExtentsFrom(extents_, end);
  return Status::Ok();
}

bool PendingExtents::LiesIn(ZoneId zone) const {
  return std::any_of(extents_.begin(), extents_.end(),
                     [&](const FileExtent& extent) { return catalog_.geometry.ZoneOf(extent.device_offset) == zone; });
}

}  // namespace isozone
