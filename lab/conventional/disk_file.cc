#include <algorithm>

#include "base/units.h"
#include "conventional/disk.h"

namespace isozone {
namespace {

// What the kernel puts into one request, and enough in flight to keep a fast device busy, as Isozone's writers have it.
constexpr uint64_t kWriteUnit = kMiB;
constexpr uint64_t kMostOnTheWay = 16 * kMiB;

}  // namespace

Result<std::shared_ptr<DiskFile>> DiskFile::LayOut(Disk& disk, uint64_t size) {
  auto file = std::make_shared<DiskFile>(disk);
  ISOZONE_RETURN_IF_ERROR(file->Reserve(size));
  const MutexLock lock(file->mu_);
  file->size_ = size;
  file->blocks_ = file->reserved_;
  file->reserved_ = 0;
  file->metadata_changed_ = false;
  disk.Allocate(file->blocks_, file->extents_);
  for (const Extent& e : file->extents_) disk.device_.Fill(e.block * disk.block_size_, e.count * disk.block_size_);
  return file;
}

DiskFile::DiskFile(Disk& disk) : disk_(disk) {}

DiskFile::~DiskFile() {
  const MutexLock lock(mu_);
  disk_.Release(extents_, reserved_);
}

Status DiskFile::Reserve(uint64_t end) {
  const MutexLock lock(mu_);
  const uint64_t needed = RoundUp(end, disk_.block_size_) / disk_.block_size_;
  if (needed <= blocks_ + reserved_) return Status::Ok();
  const uint64_t more = needed - blocks_ - reserved_;
  if (!disk_.Reserve(more)) {
    return Status::NoSpace("the conventional SSD is full; delete something, or give it a larger size=");
  }
  reserved_ += more;
  return Status::Ok();
}

void DiskFile::Wrote(uint64_t offset, uint64_t length) {
  {
    const MutexLock lock(mu_);
    if (dirty_from_ == dirty_to_) dirty_from_ = dirty_to_ = offset;
    if (offset != dirty_to_) {
      WriteOutLocked();
      dirty_from_ = offset;
    }
    dirty_to_ = offset + length;
    if (dirty_to_ > size_) metadata_changed_ = true;
    size_ = std::max(size_, dirty_to_);
    const uint64_t whole = RoundDown(dirty_to_, kWriteUnit);
    if (whole > dirty_from_) {
      StartWrites(dirty_from_, whole);
      dirty_from_ = whole;
    }
  }
  writes_->WaitForAtMost(kMostOnTheWay);
}

void DiskFile::WriteOut() {
  const MutexLock lock(mu_);
  WriteOutLocked();
}

void DiskFile::Sync() {
  bool changed = false;
  {
    const MutexLock lock(mu_);
    WriteOutLocked();
    changed = std::exchange(metadata_changed_, false);
  }
  writes_->Wait();
  disk_.CommitMetadata(changed);
}

void DiskFile::Truncate(uint64_t size) {
  const MutexLock lock(mu_);
  if (size < size_) CutBlocks(RoundUp(size, disk_.block_size_) / disk_.block_size_);
  dirty_to_ = std::min(dirty_to_, size);
  dirty_from_ = std::min(dirty_from_, dirty_to_);
  size_ = size;
  metadata_changed_ = true;
}

std::vector<Extent> DiskFile::Lookup(uint64_t offset, uint64_t length) const {
  const MutexLock lock(mu_);
  const uint64_t block = disk_.block_size_;
  const uint64_t end = std::min(offset + length, size_);
  if (offset >= end) return {};
  const uint64_t first_block = offset / block;
  const uint64_t end_block = RoundUp(end, block) / block;
  if (dirty_from_ == dirty_to_) return Find(first_block, end_block);
  const uint64_t first_dirty = dirty_from_ / block;
  const uint64_t end_dirty = RoundUp(dirty_to_, block) / block;
  std::vector<Extent> found = Find(first_block, std::min(end_block, first_dirty));
  for (const Extent& extent : Find(std::max(first_block, end_dirty), end_block)) found.push_back(extent);
  return found;
}

void DiskFile::WriteOutLocked() {
  if (dirty_from_ < dirty_to_) StartWrites(dirty_from_, dirty_to_);
  dirty_from_ = dirty_to_;
}

// Writes whole blocks. The block that `to` lies in is written again when more data for it has arrived.
void DiskFile::StartWrites(uint64_t from, uint64_t to) {
  const uint64_t end_block = RoundUp(to, disk_.block_size_) / disk_.block_size_;
  if (end_block > blocks_) {
    disk_.Allocate(end_block - blocks_, extents_);
    reserved_ -= end_block - blocks_;
    blocks_ = end_block;
  }
  for (uint64_t at = from; at < to;) {
    const uint64_t next = std::min(RoundDown(at, kWriteUnit) + kWriteUnit, to);
    disk_.Submit(TimingOpKind::kWrite,
                 Find(at / disk_.block_size_, RoundUp(next, disk_.block_size_) / disk_.block_size_), writes_);
    at = next;
  }
}

void DiskFile::CutBlocks(uint64_t keep) {
  std::vector<Extent> cut;
  while (blocks_ > keep) {
    Extent& last = extents_.back();
    const uint64_t count = std::min(last.count, blocks_ - keep);
    cut.push_back({last.block + last.count - count, count});
    last.count -= count;
    if (last.count == 0) extents_.pop_back();
    blocks_ -= count;
  }
  const uint64_t still_reserved = std::min(reserved_, keep - blocks_);
  disk_.Release(cut, reserved_ - still_reserved);
  reserved_ = still_reserved;
}

std::vector<Extent> DiskFile::Find(uint64_t first_block, uint64_t end_block) const {
  std::vector<Extent> found;
  uint64_t at = 0;  // the first block of the file in `extent`
  for (const Extent& extent : extents_) {
    const uint64_t from = std::max(at, first_block);
    const uint64_t to = std::min(at + extent.count, end_block);
    if (from < to) found.push_back({extent.block + from - at, to - from});
    at += extent.count;
    if (at >= end_block) break;
  }
  return found;
}

}  // namespace isozone
