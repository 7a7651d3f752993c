#include "fs/file/in_place_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"

namespace isozone {
namespace {

uint64_t EndInFile(const FileExtent& extent) { return extent.file_offset + extent.length; }

}  // namespace

Status InPlaceZones::Write(std::span<const std::byte> data, uint64_t file_offset, DataClass data_class,
                           IoClass io_class, std::vector<FileExtent>& written, SpaceClaim& space) {
  AlignedBuffer buffer(RoundUp(data.size(), context_.geometry().block_size));
  std::memcpy(buffer.data(), data.data(), data.size());
  std::memset(buffer.data() + data.size(), 0, buffer.size() - data.size());
  const MutexLock lock(mu_);
  stream_.set_data_class(data_class);
  stream_.set_io_class(io_class);
  return stream_.WriteExtents(buffer.span(), data.size(), file_offset, false, written, space);
}

Status InPlaceZones::MakeDurable() {
  const MutexLock lock(mu_);
  return stream_.MakeDurable();
}

void InPlaceZones::Release() {
  const MutexLock lock(mu_);
  stream_.Release();
}

void InPlaceWrites::Abandon() {
  const MutexLock lock(context_.namespace_mutex);
  const Inode* inode = context_.state.Find(file_.id());
  if (inode != nullptr && !pending_.empty()) file_.Reset(inode->extents.Expand(), file_.damage());
  context_.LeaveToHandles(file_.id(), std::move(space_));
  pending_.clear();
  bytes_ = 0;
}

void InPlaceWrites::Cut(uint64_t size) {
  if (!pending_.empty()) file_.Move({}, space_.Split(Supersede(size, UINT64_MAX - size)));
}

Status InPlaceWrites::Write(uint64_t offset, std::span<const std::byte> data, DataClass data_class, IoClass io_class) {
  std::vector<FileExtent> written;
  SpaceClaim space;
  ISOZONE_RETURN_IF_ERROR(zones_.Write(data, offset, data_class, io_class, written, space));
  const std::vector<ZoneBytes> superseded = Supersede(offset, data.size());
  SpaceClaim old = space_.Split(superseded);
  space_.Merge(std::move(space));
  for (const FileExtent& extent : written) Insert(extent);
  file_.Move(written, std::move(old));
  file_.NoteOverwritten();
  context_.in_place_writes.fetch_add(1, std::memory_order_relaxed);
  context_.in_place_bytes.fetch_add(data.size(), std::memory_order_relaxed);
  return Status::Ok();
}

std::vector<ZoneBytes> InPlaceWrites::Supersede(uint64_t offset, uint64_t length) {
  std::vector<FileExtent> superseded;
  const uint64_t end = offset + length;
  auto it = pending_.upper_bound(offset);
  if (it != pending_.begin() && EndInFile(std::prev(it)->second) > offset) --it;
  while (it != pending_.end() && it->first < end) {
    const FileExtent old = it->second;
    it = pending_.erase(it);
    bytes_ -= old.length;
    const uint64_t begin = std::max(old.file_offset, offset);
    const uint64_t behind = std::min(EndInFile(old), end);
    superseded.push_back({begin, old.PlaceOf(begin - old.file_offset), behind - begin});
    if (old.file_offset < begin) Insert({old.file_offset, old.device_offset, begin - old.file_offset});
    if (EndInFile(old) > behind) Insert({behind, old.PlaceOf(behind - old.file_offset), EndInFile(old) - behind});
  }
  return SpaceOf(context_.geometry(), superseded);
}

void InPlaceWrites::Insert(const FileExtent& extent) {
  pending_.emplace(extent.file_offset, extent);
  bytes_ += extent.length;
}

std::vector<MetadataOp> InPlaceWrites::Operations(uint64_t modified_s) const {
  std::vector<MetadataOp> ops;
  std::vector<FileExtent> run;
  const auto end_run = [&] {
    if (!run.empty()) ops.emplace_back(PlaceExtents{file_.id(), std::exchange(run, {}), modified_s});
  };
  for (const auto& [offset, extent] : pending_) {
    if (!run.empty() && EndInFile(run.back()) != offset) end_run();
    AppendExtent(run, extent, context_.geometry().zone_size);
  }
  end_run();
  return ops;
}

std::vector<ZoneBytes> InPlaceWrites::SpaceBefore(const Inode& inode) const {
  std::vector<FileExtent> before;
  for (const auto& [offset, extent] : pending_) {
    const uint64_t first = inode.extents.IndexAt(offset);
    const uint64_t last = inode.extents.IndexAt(EndInFile(extent) - 1);
    const std::vector<FileExtent> held = inode.extents.Expand(first, last - first + 1);
    const std::vector<FileExtent> part = ExtentsFrom(CutExtents(held, EndInFile(extent)), offset);
    before.insert(before.end(), part.begin(), part.end());
  }
  return SpaceOf(context_.geometry(), before);
}

Result<uint64_t> InPlaceWrites::Publish() {
  ISOZONE_RETURN_IF_ERROR(zones_.MakeDurable());
  const MutexLock lock(context_.namespace_mutex);
  const Inode* inode = context_.state.Find(file_.id());
  if (inode == nullptr) return context_.journal->last_sequence();
  if (!pending_.empty()) {
    if (EndInFile(pending_.rbegin()->second) > inode->size) {
      return Status::Corruption(fmt::format("inode {} is shorter than what was written in it", inode->id.value()));
    }
    const std::vector<ZoneBytes> before = SpaceBefore(*inode);
    ISOZONE_RETURN_IF_ERROR(context_.Commit(Operations(context_.clock.NowWallS())).status());
    space_.ToMetadata();
    file_.Move({}, SpaceClaim::FromMetadata(*context_.pool, before));
  }
  pending_.clear();
  bytes_ = 0;
  return context_.journal->last_sequence();
}

}  // namespace isozone
