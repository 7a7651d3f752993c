#include "store/file/in_place_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "store/file/file_space.h"

namespace isozone {
namespace {

uint64_t EndInFile(const FileExtent& extent) { return extent.file_offset + extent.length; }

}  // namespace

Status InPlaceZones::Write(std::span<const std::byte> data, uint64_t file_offset, DataClass data_class,
                           IoClass io_class, std::vector<FileExtent>& written, SpaceClaim& space) {
  AlignedBuffer buffer(RoundUp(data.size(), data_path_.geometry().block_size));
  std::memcpy(buffer.data(), data.data(), data.size());
  std::memset(buffer.data() + data.size(), 0, buffer.size() - data.size());
  const MutexLock lock(mu_);
  stream_.set_data_class(data_class);
  stream_.set_io_class(io_class);
  ISOZONE_RETURN_IF_ERROR(stream_.WriteExtents(buffer.span(), data.size(), file_offset, false, written, space));
  data_path_.in_place_writes.fetch_add(1, std::memory_order_relaxed);
  data_path_.in_place_bytes.fetch_add(data.size(), std::memory_order_relaxed);
  data_path_.user_bytes_appended.fetch_add(data.size(), std::memory_order_relaxed);
  return Status::Ok();
}

Status InPlaceZones::MakeDurable() {
  const MutexLock lock(mu_);
  return stream_.MakeDurable();
}

void InPlaceZones::Release() {
  const MutexLock lock(mu_);
  stream_.Release();
}

InPlaceWrites::~InPlaceWrites() {
  Abandon();
  const MutexLock names(catalog_.namespace_mutex);
  Unregister();
}

bool InPlaceWrites::empty() const {
  const MutexLock lock(mu_);
  return pending_.empty();
}

bool InPlaceWrites::is_large() const {
  const MutexLock lock(mu_);
  return !file_.removed() && (pending_.size() > kPendingRangesMax || bytes_ > kPendingBytesMax);
}

void InPlaceWrites::Abandon() {
  const MutexLock names(catalog_.namespace_mutex);
  const MutexLock lock(mu_);
  const Inode* inode = catalog_.state.Find(id_);
  if (inode != nullptr && !pending_.empty()) file_.Reset(inode->extents, file_.damage());
  catalog_.LeaveToHandles(id_, std::move(space_));
  pending_.clear();
  bytes_ = 0;
}

void InPlaceWrites::Cut(uint64_t size) {
  const MutexLock lock(mu_);
  if (!pending_.empty()) file_.Move({}, space_.Split(Supersede(size, UINT64_MAX - size)));
}

Status InPlaceWrites::Write(uint64_t offset, std::span<const std::byte> data, DataClass data_class, IoClass io_class) {
  std::vector<FileExtent> written;
  SpaceClaim space;
  ISOZONE_RETURN_IF_ERROR(zones_.Write(data, offset, data_class, io_class, written, space));
  Register();
  const MutexLock lock(mu_);
  const std::vector<ZoneBytes> superseded = Supersede(offset, data.size());
  SpaceClaim old = space_.Split(superseded);
  space_.Merge(std::move(space));
  ++added_;
  for (const FileExtent& extent : written) Insert(extent, added_);
  file_.Move(written, std::move(old));
  file_.NoteOverwritten();
  return Status::Ok();
}

std::vector<ZoneBytes> InPlaceWrites::Supersede(uint64_t offset, uint64_t length) {
  std::vector<FileExtent> superseded;
  const uint64_t end = offset + length;
  auto it = pending_.upper_bound(offset);
  if (it != pending_.begin() && EndInFile(std::prev(it)->second.extent) > offset) --it;
  while (it != pending_.end() && it->first < end) {
    const auto [old, number] = it->second;
    it = pending_.erase(it);
    bytes_ -= old.length;
    const uint64_t begin = std::max(old.file_offset, offset);
    const uint64_t behind = std::min(EndInFile(old), end);
    superseded.push_back({begin, old.PlaceOf(begin - old.file_offset), behind - begin});
    if (old.file_offset < begin) Insert({old.file_offset, old.device_offset, begin - old.file_offset}, number);
    if (EndInFile(old) > behind) {
      Insert({behind, old.PlaceOf(behind - old.file_offset), EndInFile(old) - behind}, number);
    }
  }
  return SpaceOf(catalog_.geometry, superseded);
}

void InPlaceWrites::Insert(const FileExtent& extent, uint64_t number) {
  pending_.emplace(extent.file_offset, Pending{extent, number});
  bytes_ += extent.length;
}

std::vector<MetadataOp> InPlaceWrites::Operations(const std::vector<FileExtent>& ranges) const {
  const uint64_t now_s = catalog_.clock.NowWallS();
  std::vector<MetadataOp> ops;
  std::vector<FileExtent> run;
  const auto end_run = [&] {
    if (!run.empty()) ops.emplace_back(PlaceExtents{id_, std::exchange(run, {}), now_s});
  };
  for (const FileExtent& extent : ranges) {
    if (!run.empty() && EndInFile(run.back()) != extent.file_offset) end_run();
    AppendExtent(run, extent, catalog_.geometry.zone_size);
  }
  end_run();
  return ops;
}

std::vector<ZoneBytes> InPlaceWrites::SpaceBefore(const Inode& inode, const std::vector<FileExtent>& ranges) const {
  std::vector<FileExtent> before;
  for (const FileExtent& extent : ranges) {
    const std::vector<FileExtent> held = inode.extents.Expand(extent.file_offset, EndInFile(extent));
    const std::vector<FileExtent> part = ExtentsFrom(CutExtents(held, EndInFile(extent)), extent.file_offset);
    before.insert(before.end(), part.begin(), part.end());
  }
  return SpaceOf(catalog_.geometry, before);
}

Status InPlaceWrites::PublishUpTo(Catalog& catalog, uint64_t last) {
  const Inode& inode = *catalog.state.Find(id_);
  std::vector<FileExtent> ranges;
  for (const auto& [offset, range] : pending_) {
    if (range.number <= last) ranges.push_back(range.extent);
  }
  if (ranges.empty()) return Status::Ok();
  if (EndInFile(ranges.back()) > inode.size) {
    return Status::Corruption(fmt::format("inode {} is shorter than what was written in it", inode.id.value()));
  }
  const std::vector<ZoneBytes> before = SpaceBefore(inode, ranges);
  ISOZONE_RETURN_IF_ERROR(catalog.Commit(Operations(ranges)).status());
  space_.Split(SpaceOf(catalog.geometry, ranges)).ToMetadata();
  file_.Move({}, SpaceClaim::FromMetadata(*catalog.pool, before));
  std::erase_if(pending_, [last](const auto& entry) { return entry.second.number <= last; });
  for (const FileExtent& extent : ranges) bytes_ -= extent.length;
  return Status::Ok();
}

Result<uint64_t> InPlaceWrites::Publish() {
  ISOZONE_RETURN_IF_ERROR(zones_.MakeDurable());
  const MutexLock names(catalog_.namespace_mutex);
  const MutexLock lock(mu_);
  if (catalog_.state.Find(id_) != nullptr) ISOZONE_RETURN_IF_ERROR(PublishUpTo(catalog_, added_));
  return catalog_.journal->last_sequence();
}

bool InPlaceWrites::LiesIn(ZoneId zone) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& entry) {
    return catalog_.geometry.ZoneOf(entry.second.extent.device_offset) == zone;
  });
}

Status InPlaceWrites::PublishFlushed(Catalog& catalog, uint64_t flushed) {
  if (pending_.empty()) return Status::Ok();
  // It is being cut, and will forget what lies behind.
  if (EndInFile(pending_.rbegin()->second.extent) > catalog.state.Find(id_)->size) return Status::Ok();
  return PublishUpTo(catalog, flushed);
}

}  // namespace isozone
