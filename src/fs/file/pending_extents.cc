#include "fs/file/pending_extents.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "fs/extents.h"

namespace isozone {

PendingExtents::PendingExtents(FsCore& core, InodeId id, DataClass data) : core_(core), id_(id), data_(data) {
  const MutexLock names(core_.namespace_mutex);
  serial_ = core_.next_pending++;
  core_.pending.emplace(serial_, this);
}

PendingExtents::~PendingExtents() {
  const MutexLock names(core_.namespace_mutex);
  core_.pending.erase(serial_);
  const MutexLock lock(mu_);
  core_.ReleaseSpace(id_, SpaceOf(core_.geometry(), extents_));
}

void PendingExtents::Add(std::span<const FileExtent> extents) {
  const MutexLock lock(mu_);
  for (const FileExtent& extent : extents) {
    AppendExtent(extents_, extent, core_.geometry().zone_size);
    added_ += extent.length;
  }
}

void PendingExtents::SetDataClass(DataClass data) {
  const MutexLock lock(mu_);
  data_ = data;
}

Result<uint64_t> PendingExtents::Publish() {
  const MutexLock names(core_.namespace_mutex);
  const MutexLock lock(mu_);
  if (core_.state.Find(id_) == nullptr) {
    core_.ReleaseSpace(id_, SpaceOf(core_.geometry(), extents_));
    extents_.clear();
    taken_ = added_;
  }
  ISOZONE_RETURN_IF_ERROR(PublishFirst(core_, added_ - taken_));
  // Where nothing was left to publish, what was published before has an earlier number; so has the file's removal.
  return core_.journal->last_sequence();
}

Status PendingExtents::PublishFirst(FsCore& core, uint64_t bytes) {
  const Inode* inode = core.state.Find(id_);
  if (bytes == 0 || inode == nullptr) return Status::Ok();
  const uint64_t end = extents_.front().file_offset + bytes;
  std::vector<MetadataOp> ops;
  if (inode->lifetime != data_.lifetime || inode->level != data_.level) {
    ops.emplace_back(SetAttributes{id_, data_.lifetime, WallSeconds(), data_.level});
  }
  ops.emplace_back(AppendExtents{id_, inode->extents.size(), CutExtents(extents_, end), WallSeconds()});
  ISOZONE_RETURN_IF_ERROR(core.Commit(ops).status());
  taken_ += bytes;
  extents_ = ExtentsFrom(extents_, end);
  return Status::Ok();
}

bool PendingExtents::LiesIn(ZoneId zone) const {
  return std::any_of(extents_.begin(), extents_.end(),
                     [&](const FileExtent& extent) { return core_.geometry().ZoneOf(extent.device_offset) == zone; });
}

Status PendingExtents::PublishZone(FsCore& core, ZoneId zone) {
  std::vector<std::pair<uint64_t, uint64_t>> found;  // serial, and what it had added by then
  {
    const MutexLock names(core.namespace_mutex);
    for (const auto& [serial, pending] : core.pending) {
      const MutexLock lock(pending->mu_);
      if (pending->LiesIn(zone) && core.state.Find(pending->id_) != nullptr)
        found.emplace_back(serial, pending->added_);
    }
  }
  if (found.empty()) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(core.engine.Flush(IoClass::kGc));
  const MutexLock names(core.namespace_mutex);
  for (const auto& [serial, flushed] : found) {
    const auto still = core.pending.find(serial);
    if (still == core.pending.end()) continue;
    PendingExtents& pending = *still->second;
    const MutexLock lock(pending.mu_);
    // Its sink may have published it meanwhile, and more.
    ISOZONE_RETURN_IF_ERROR(pending.PublishFirst(core, flushed - std::min(flushed, pending.taken_)));
  }
  return Status::Ok();
}

}  // namespace isozone
