#include "fs/file/open_file.h"

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

OpenFile::OpenFile(InodeId id, FileKind kind, uint64_t zone_size, std::vector<FileExtent> extents, Status damage)
    : id_(id), kind_(kind), zone_size_(zone_size), extents_(std::move(extents)), damage_(std::move(damage)) {
  if (!extents_.empty()) size_ = extents_.back().file_offset + extents_.back().length;
}

Status OpenFile::damage() const {
  const SharedLock lock(mu_);
  return damage_;
}

size_t OpenFile::Locate(uint64_t offset, std::span<std::byte> buffer, std::pmr::vector<FileExtent>& pieces,
                        std::shared_ptr<const ReadPin>& pin) const {
  const SharedLock lock(mu_);
  const uint64_t size = size_.load(std::memory_order_acquire);
  if (offset >= size) return 0;
  const uint64_t end = std::min<uint64_t>(size, offset + buffer.size());

  uint64_t at = offset;
  for (const FileExtent* e = FindExtent(extents_, at);
       e != extents_.data() + extents_.size() && e != nullptr && at < end; ++e) {
    const uint64_t skip = at - e->file_offset;
    const uint64_t length = std::min(e->length - skip, end - at);
    if (e->is_hole()) {
      std::memset(buffer.data() + (at - offset), 0, length);
    } else {
      pieces.push_back({at - offset, e->PlaceOf(skip), length});
    }
    at += length;
  }
  if (!pieces.empty()) pin = pin_;
  for (size_t i = 0; i < memory_.size() && at < end; ++i) {
    const uint64_t piece_end = i + 1 < memory_.size() ? memory_[i + 1].file_offset : size;
    if (at >= piece_end) continue;
    const uint64_t length = std::min(piece_end, end) - at;
    std::memcpy(buffer.data() + (at - offset), memory_[i].data + (at - memory_[i].file_offset), length);
    at += length;
  }
  return at - offset;
}

std::vector<FileExtent> OpenFile::Extents(uint64_t offset, uint64_t end) const {
  const SharedLock lock(mu_);
  const FileExtent* const first = offset == 0 ? extents_.data() : FindExtent(extents_, offset);
  if (first == nullptr) return {};
  const FileExtent* last = first;
  for (const FileExtent* const behind = extents_.data() + extents_.size(); last != behind && last->file_offset < end;) {
    ++last;
  }
  return {first, last};
}

uint32_t OpenFile::CountZones(uint32_t most) const {
  const SharedLock lock(mu_);
  std::vector<uint64_t> zones;
  for (size_t i = 0; i < extents_.size() && i < most; ++i)
    zones.push_back(extents_[i].device_offset.value() / zone_size_);
  std::sort(zones.begin(), zones.end());
  return static_cast<uint32_t>(std::unique(zones.begin(), zones.end()) - zones.begin());
}

void OpenFile::SetMemory(std::span<const FileExtent> written, std::span<const MemoryPiece> pieces) {
  const ExclusiveLock lock(mu_);
  for (const FileExtent& extent : written) AppendExtent(extents_, extent, zone_size_);
  memory_.assign(pieces.begin(), pieces.end());
}

void OpenFile::DropMemory() {
  const ExclusiveLock lock(mu_);
  memory_.clear();
  const uint64_t size = extents_.empty() ? 0 : extents_.back().file_offset + extents_.back().length;
  if (size < size_.load(std::memory_order_relaxed)) generation_.fetch_add(1, std::memory_order_release);
  size_.store(size, std::memory_order_release);
}

void OpenFile::Extend(uint64_t size) {
  const ExclusiveLock lock(mu_);
  const uint64_t end = size_.load(std::memory_order_relaxed);
  AppendExtent(extents_, {end, FileExtent::kHole, size - end}, zone_size_);
  size_.store(size, std::memory_order_release);
}

void OpenFile::MoveLocked(std::span<const FileExtent> placed, SpaceClaim old, std::shared_ptr<ReadPin>& before) {
  ApplyEdits(extents_, PlanEdits(extents_, placed, zone_size_));
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
    const FileExtent* extent = FindExtent(extents_, to.file_offset);
    for (uint64_t done = 0; extent != nullptr && extent != extents_.data() + extents_.size() && done < to.length;
         ++extent) {
      const uint64_t skip = to.file_offset + done - extent->file_offset;
      const uint64_t length = std::min(extent->length - skip, to.length - done);
      const bool still_there = extent->PlaceOf(skip) == DeviceOffset(from.value() + done);
      if (still_there) placed.push_back({to.file_offset + done, to.PlaceOf(done), length});
      done += length;
    }
  }
  std::ranges::sort(placed, {}, &FileExtent::file_offset);
  MoveLocked(placed, std::move(old), before);
}

void OpenFile::Reset(std::vector<FileExtent> extents, Status damage, std::vector<std::byte> tail) {
  const ExclusiveLock lock(mu_);
  // A file to which something was only added has not moved.
  const bool moved = extents.size() < extents_.size() || !std::equal(extents_.begin(), extents_.end(), extents.begin());
  if (moved) generation_.fetch_add(1, std::memory_order_release);
  extents_ = std::move(extents);
  memory_.clear();
  damage_ = std::move(damage);
  const uint64_t end = extents_.empty() ? 0 : extents_.back().file_offset + extents_.back().length;
  tail_ = std::move(tail);
  if (!tail_.empty()) memory_.push_back({end, tail_.data()});
  size_.store(end + tail_.size(), std::memory_order_release);
}

}  // namespace isozone
