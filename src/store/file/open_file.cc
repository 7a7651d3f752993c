#include "store/file/open_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace isozone {

ReadPin::~ReadPin() {
  thread_local std::shared_ptr<ReadPin>* goes_next = nullptr;  // of the loop below, where one runs on this thread
  moved_.Release();
  if (goes_next != nullptr) {
    *goes_next = std::move(next_);
    return;
  }
  std::shared_ptr<ReadPin> next = std::move(next_);
  goes_next = &next;
  while (next != nullptr) std::exchange(next, nullptr).reset();
  goes_next = nullptr;
}

OpenFile::OpenFile(InodeId id, FileKind kind, uint64_t zone_size, ExtentList extents, Status damage)
    : id_(id), kind_(kind), zone_size_(zone_size), extents_(std::move(extents)), damage_(std::move(damage)) {
  size_ = extents_.end_offset();
}

Status OpenFile::damage() const {
  const SharedLock lock(mu_);
  return damage_;
}

size_t OpenFile::Locate(uint64_t offset, std::span<std::byte> buffer, const OnDevice& on_device,
                        std::shared_ptr<const ReadPin>& pin) const {
  const SharedLock lock(mu_);
  const uint64_t size = size_.load(std::memory_order_acquire);
  if (offset >= size) return 0;
  const uint64_t end = std::min<uint64_t>(size, offset + buffer.size());

  uint64_t at = offset;
  bool on_any = false;
  for (auto it = extents_.At(at); at < std::min(end, extents_.end_offset()); ++it) {
    const FileExtent e = *it;
    const uint64_t skip = at - e.file_offset;
    const uint64_t length = std::min(e.length - skip, end - at);
    if (e.is_hole()) {
      std::memset(buffer.data() + (at - offset), 0, length);
    } else {
      on_device({at - offset, e.PlaceOf(skip), length});
      on_any = true;
    }
    at += length;
  }
  if (on_any) pin = pin_;
  for (size_t i = 0; i < memory_.size() && at < end; ++i) {
    const uint64_t piece_end = i + 1 < memory_.size() ? memory_[i + 1].file_offset : size;
    if (at >= piece_end) continue;
    const uint64_t length = std::min(piece_end, end) - at;
    std::memcpy(buffer.data() + (at - offset), memory_[i].data + (at - memory_[i].file_offset), length);
    at += length;
  }
  return at - offset;
}

ExtentList OpenFile::Extents(uint64_t offset, uint64_t end) const {
  const SharedLock lock(mu_);
  if (offset == 0 && end >= extents_.end_offset()) return extents_;
  return extents_.Expand(offset, end);
}

uint32_t OpenFile::CountZones(uint32_t most) const {
  const SharedLock lock(mu_);
  std::vector<uint64_t> zones;
  const auto behind = extents_.end();
  for (auto it = extents_.begin(); it != behind && zones.size() < most; ++it) {
    zones.push_back((*it).device_offset.value() / zone_size_);
  }
  std::sort(zones.begin(), zones.end());
  return static_cast<uint32_t>(std::unique(zones.begin(), zones.end()) - zones.begin());
}

void OpenFile::SetMemory(std::span<const FileExtent> written, std::span<const MemoryPiece> pieces) {
  const ExclusiveLock lock(mu_);
  for (const FileExtent& extent : written) AddLocked(extent);
  memory_.assign(pieces.begin(), pieces.end());
}

void OpenFile::DropMemory() {
  const ExclusiveLock lock(mu_);
  memory_.clear();
  const uint64_t size = extents_.end_offset();
  if (size < size_.load(std::memory_order_relaxed)) generation_.fetch_add(1, std::memory_order_release);
  size_.store(size, std::memory_order_release);
}

void OpenFile::Resize(uint64_t size) {
  const ExclusiveLock lock(mu_);
  const uint64_t end = size_.load(std::memory_order_relaxed);
  if (size > end) {
    AddLocked({end, FileExtent::kHole, size - end});
  } else {
    generation_.fetch_add(1, std::memory_order_release);
    extents_.CutAt(size);
    memory_.clear();
    tail_.clear();
  }
  size_.store(size, std::memory_order_release);
}

void OpenFile::AddLocked(const FileExtent& extent) {
  std::vector<FileExtent> last;
  if (!extents_.empty()) last.push_back(extents_.back());
  AppendExtent(last, extent, zone_size_);
  // Where it was joined with the last one, the two replace that.
  extents_.Append(std::span(std::as_const(last)).last(1));
}

void OpenFile::MoveLocked(std::span<const FileExtent> placed, SpaceClaim old, std::shared_ptr<ReadPin>& before) {
  for (const ExtentChange& change : PlanChanges(extents_, placed, zone_size_)) extents_.Replace(change.now);
  before = std::exchange(pin_, std::make_shared<ReadPin>());
  before->next_ = pin_;
  before->moved_ = std::move(old);
}

void OpenFile::Move(std::span<const FileExtent> placed, SpaceClaim old) {
  // Goes after the lock: if no read holds the pin, it gives its claim back now.
  std::shared_ptr<ReadPin> before;
  const ExclusiveLock lock(mu_);
  MoveLocked(placed, std::move(old), before);
}

void OpenFile::Relocate(std::span<const Relocation> relocations, SpaceClaim old) {
  std::shared_ptr<ReadPin> before;  // as in Move
  const ExclusiveLock lock(mu_);
  std::vector<FileExtent> placed;
  for (const auto& [to, from] : relocations) {
    const auto behind = extents_.end();
    uint64_t done = 0;
    for (auto it = extents_.At(to.file_offset); it != behind && done < to.length; ++it) {
      const FileExtent extent = *it;
      const uint64_t skip = to.file_offset + done - extent.file_offset;
      const uint64_t length = std::min(extent.length - skip, to.length - done);
      const bool still_there = extent.PlaceOf(skip) == DeviceOffset(from.value() + done);
      if (still_there) placed.push_back({to.file_offset + done, to.PlaceOf(done), length});
      done += length;
    }
  }
  std::ranges::sort(placed, {}, &FileExtent::file_offset);
  MoveLocked(placed, std::move(old), before);
}

void OpenFile::Reset(ExtentList extents, Status damage, std::vector<std::byte> tail) {
  const ExclusiveLock lock(mu_);
  // A file to which something was only added has not moved.
  if (!extents.BeginsWith(extents_)) generation_.fetch_add(1, std::memory_order_release);
  extents_ = std::move(extents);
  memory_.clear();
  damage_ = std::move(damage);
  const uint64_t end = extents_.end_offset();
  tail_ = std::move(tail);
  if (!tail_.empty()) memory_.push_back({end, tail_.data()});
  size_.store(end + tail_.size(), std::memory_order_release);
}

}  // namespace isozone
