// OpenFile is what all handles of one inode share while any is open: where its bytes are, on the device or still in the
// writer's memory, and the space that must not be reclaimed before the last handle has gone.
//
//   [0 .......... on_device)            extents, of which some may be holes
//   [on_device .. size)                 pieces of the writer's memory: being written out, or being filled
//
// A writer copies bytes behind `size`, then publishes a larger size; readers never look behind it. So an append takes
// no lock, and a reader copies from memory under the shared lock, which keeps the pieces where they are.
//
// Moving. The collector copies runs of a file to other zones. A read that was located before goes on where the file
// was, so what was there is released only when all such reads are done: each holds the ReadPin of its time, which keeps
// all later ones, and has the claim on what was moved away at the end of its time.
//
// Overwriting. A positional file places ranges elsewhere (Move) before the metadata knows of it. Until it does, the
// collector may move what was there before; so a relocation says where the bytes came from, and counts only where the
// file still has them there.
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
#include "store/extents.h"
#include "store/file_system.h"
#include "store/metadata/metadata.h"
#include "store/pins/reader_pins.h"
#include "store/space/space_claim.h"

namespace isozone {

// ReadPin: keeps what a read in flight reads. A read holds the pin of the moment in which it was located. The last one
// may be released on a thread of the device.
class ReadPin {
 public:
  ReadPin() = default;
  // Releases a chain of pins by a loop, not by recursion: a slow read keeps as many pins as there were moves meanwhile.
  ~ReadPin();
  ReadPin(const ReadPin&) = delete;
  ReadPin& operator=(const ReadPin&) = delete;

 private:
  friend class OpenFile;
  std::shared_ptr<ReadPin> next_;
  SpaceClaim moved_;  // goes before next_: releases happen in the order of the moves
};

class OpenFile {
 public:
  // A piece of the file that only the writer's memory has: [file_offset, the next piece or size).
  struct MemoryPiece {
    uint64_t file_offset = 0;
    const std::byte* data = nullptr;
  };

  // The extents of a log come from its scan; `damage` is what reads behind them return (OK: the end of the file).
  OpenFile(InodeId id, FileKind kind, uint64_t zone_size, ExtentList extents, Status damage);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  InodeId id() const { return id_; }
  FileKind kind() const { return kind_.load(std::memory_order_relaxed); }
  // Notes that the file, a log, has become a file of data (LogToData).
  void NoteIsData() { kind_.store(FileKind::kData, std::memory_order_relaxed); }
  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  // Returns the error of reads behind the extents of a damaged log; else OK.
  Status damage() const;
  // Returns whether the last name of the file has gone, and the journal knows. Set under the namespace lock.
  bool removed() const { return removed_.load(std::memory_order_acquire); }
  void NoteRemoved() { removed_.store(true, std::memory_order_release); }

  // Tells where [offset, offset + buffer.size()) is: what memory holds is copied into `buffer` right away, and
  // `on_device` is called with each piece that lies on the device (file_offset relative to `offset`), in file order,
  // under a lock of the file. Returns how many bytes of the range exist. Where there are pieces, `pin` keeps them as
  // they are until it goes.
  using OnDevice = std::function<void(const FileExtent& piece)>;
  size_t Locate(uint64_t offset, std::span<std::byte> buffer, const OnDevice& on_device,
                std::shared_ptr<const ReadPin>& pin) const;

  // Returns the extents that [offset, end) touches.
  ExtentList Extents(uint64_t offset = 0, uint64_t end = UINT64_MAX) const;
  // Returns in how many zones the beginning of the file lies, up to `most`: the width of its stripes.
  uint32_t CountZones(uint32_t most) const;

  // --- The writer ---
  // Shows readers the file up to `size`: the bytes up to there are in the last piece given to SetMemory.
  void PublishSize(uint64_t size) { size_.store(size, std::memory_order_release); }
  // Replaces the pieces in memory and adds `written`, what has just reached the device; neighbours are joined.
  void SetMemory(std::span<const FileExtent> written, std::span<const MemoryPiece> pieces);
  // Ends the file where the device has it: what only memory has is no longer part of it, and the memory may be reused.
  void DropMemory();
  // Replaces all that is known of where the file's bytes are. No writer may have bytes in memory. `tail`: bytes behind
  // the extents, of a log that another process writes.
  void Reset(ExtentList extents, Status damage, std::vector<std::byte> tail = {});
  // Notes that what was read ahead is no longer what the file has.
  void NoteOverwritten() { generation_.fetch_add(1, std::memory_order_release); }
  // Returns how often Reset has changed where the file's bytes are, or bytes were cut off, overwritten or lost: a read
  // that saw two values may have read anything.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Ends the file at `size`: what lay behind it goes, or a hole reaches up to there. No writer has bytes in memory.
  void Resize(uint64_t size);
  // Places ranges of the file, in file order and apart, where `placed` says from now on. `old`, the claim on where they
  // were, goes once no read uses that (perhaps now). No range may be in memory.
  void Move(std::span<const FileExtent> placed, SpaceClaim old);

  // --- The collector ---
  // Does the same as Move for ranges that the file still has at `from`. All others stay where they are.
  struct Relocation {
    FileExtent placed;
    DeviceOffset from;
  };
  void Relocate(std::span<const Relocation> relocations, SpaceClaim old);

  // --- Used by the file system, under its namespace lock ---
  bool has_writer = false;
  // A positional file has changes that the metadata does not know. Until it does, nobody else changes the file.
  bool is_claimed = false;
  bool is_busy() const { return has_writer || is_claimed; }
  // The file's time was set after the last append, and stays when the metadata learns of that append. Any thread.
  std::atomic<bool> keeps_time{false};
  // The details that the file had when its last name went, and what has become of them since; null before that.
  std::shared_ptr<const InodeDetails> details;
  // The claim on space that was the file's and that the metadata does not name any more: handles may be reading it. It
  // goes with the last handle.
  SpaceClaim unnamed;
  // In a read-only mount, `pins` keep the writer, in another process, from resetting the zones where the file is read.
  // `coming_pins` do so for its next places, which may not be read before the metadata was looked at once more.
  ZonePins pins;
  ZonePins coming_pins;

 private:
  void AddLocked(const FileExtent& extent) ISOZONE_REQUIRES(mu_);
  void MoveLocked(std::span<const FileExtent> placed, SpaceClaim old, std::shared_ptr<ReadPin>& before)
      ISOZONE_REQUIRES(mu_);

  const InodeId id_;
  std::atomic<FileKind> kind_;
  const uint64_t zone_size_;  // bytes
  mutable SharedMutex mu_;
  ExtentList extents_ ISOZONE_GUARDED_BY(mu_);
  std::vector<MemoryPiece> memory_ ISOZONE_GUARDED_BY(mu_);
  std::vector<std::byte> tail_ ISOZONE_GUARDED_BY(mu_);  // bytes that Reset was given; memory_ refers to them
  Status damage_ ISOZONE_GUARDED_BY(mu_);
  std::shared_ptr<ReadPin> pin_ ISOZONE_GUARDED_BY(mu_) = std::make_shared<ReadPin>();
  std::atomic<uint64_t> size_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> removed_{false};
};

}  // namespace isozone
