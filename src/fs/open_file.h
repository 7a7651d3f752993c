// OpenFile: what all handles of one inode share while any is open: where its bytes are, on the device or still in the
// writer's memory, and the space that must not be reclaimed before the last handle has gone.
//
//   [0 .......... on_device)            extents
//   [on_device .. size)                 up to two pieces of the writer's memory: one being written out, one being
//   filled
//
// A writer copies bytes behind `size`, then publishes a larger size; readers never look behind it. So an append takes
// no lock, and a reader copies from memory under the shared lock, which keeps the pieces where they are.
//
// Thread safety: any thread; one writer at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "fs/file_system.h"
#include "fs/metadata.h"

namespace isozone {

// A file whose extents begin at `file_offset`, found by binary search. Null where `offset` lies behind the last one.
const FileExtent* FindExtent(std::span<const FileExtent> extents, uint64_t offset);

class OpenFile {
 public:
  // A piece of the file that only the writer's memory has; it holds [file_offset, up to the next piece or size).
  struct MemoryPiece {
    uint64_t file_offset = 0;
    const std::byte* data = nullptr;
  };

  // The extents of a log come from its scan; `damage` is what reads behind them return (OK: the end of the file).
  OpenFile(InodeId id, FileKind kind, uint64_t zone_size, std::vector<FileExtent> extents, Status damage);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  InodeId id() const { return id_; }
  FileKind kind() const { return kind_; }
  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  Status damage() const;

  // Where [offset, offset + buffer.size()) is: what memory holds is copied into `buffer` right away, the pieces on the
  // device are appended to `pieces` (file_offset relative to `offset`). Returns how many bytes of the range exist.
  size_t Locate(uint64_t offset, std::span<std::byte> buffer, std::vector<FileExtent>& pieces) const;

  std::vector<FileExtent> Extents() const;
  // In how many zones its beginning lies, up to `most`: the width of its stripes.
  uint32_t CountZones(uint32_t most) const;

  // --- The writer ---
  // Bytes up to `size` are in the last piece given to SetMemory.
  void PublishSize(uint64_t size) { size_.store(size, std::memory_order_release); }
  // Replaces the pieces in memory and adds `written`, what has just reached the device; neighbours are joined.
  void SetMemory(std::span<const FileExtent> written, std::span<const MemoryPiece> pieces);
  // Replaces everything (truncation, overwriting). No writer may have bytes in memory.
  void Reset(std::vector<FileExtent> extents, Status damage);

  // --- Used by the file system, under its namespace lock ---
  bool has_writer = false;
  // Called when the last handle has gone (by the file system, which owns the table of open files): space that is
  // referred to only by handles. Zone and bytes.
  std::vector<std::pair<ZoneId, uint64_t>> release_at_close;

 private:
  const InodeId id_;
  const FileKind kind_;
  const uint64_t zone_size_;  // bytes
  mutable SharedMutex mu_;
  std::vector<FileExtent> extents_ ISOZONE_GUARDED_BY(mu_);
  std::vector<MemoryPiece> memory_ ISOZONE_GUARDED_BY(mu_);
  Status damage_ ISOZONE_GUARDED_BY(mu_);
  std::atomic<uint64_t> size_{0};
};

// Adds `extent` to the end of a file's extents; joins it with the last one where both are neighbours in one zone of the
// device as well.
void AppendExtent(std::vector<FileExtent>& extents, const FileExtent& extent, uint64_t zone_size);

}  // namespace isozone
