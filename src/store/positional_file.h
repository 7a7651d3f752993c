// PositionalFile: a file that is read and written anywhere, as programs do that know nothing of zones. One object
// serves all opens of an inode at a time, and keeps an inode that has lost its last name.
//
// What a write costs:
//   at the end of the file        an append, as FileWriter has it: in memory until a buffer is full or Sync. A log
//                                 (FileKind::kLog) takes one device write for each Sync.
//   over the last bytes, which    what is behind the unchanged bytes is appended: programs rewrite the last page in
//   it does not change            place to make it longer
//   anywhere else, or in a hole   new space at once, and a small record of the metadata with the next Sync. A log is no
//                                 longer one from then on: its bytes stay where they are, and later ones are not
//                                 framed. These writes are counted (Figures::in_place_writes).
//   behind the end                a hole first, which takes no space
//
// Space. When Write returns OK, there is room for what it was given, also if it is still in memory: kNoSpace comes from
// Write, and not from Sync or the last close. Write waits for zones to be reset and collected before it says so. After
// kNoSpace of Write the file is what it was before. Room for records of the metadata is reserved as well: names leave
// some to what was written before them. Sync returns kNoSpace only where that does not do, since very many files were
// written and not synced; what was appended since the last Sync is lost then. An overwrite needs new space
// before the old one is free. Allocate promises space to holes and to what lies behind the end, as long as the file is
// open; the promise is not kept beyond a mount.
//
// Durability. Sync makes data, size, times and name durable. After a power cut the file has everything up to its last
// Sync; of later writes, each may be there, in part, or not. Nothing is written out because a handle is closed, but
// the last release gives what is in memory to the device.
//
// Reads see every write that has returned. A read beside a write of the same bytes sees for each byte the old or the
// new.
//
// Failure. An error of the device that an append meets in the background comes back from the next Write, Flush or Sync;
// what could not be written is lost then, and the file ends where the device has it. kBusy, from each change: a
// FileWriter has the file open. FileWriters find a file busy from its first change here until the metadata knows of all
// changes, at the latest when the last handle goes. kReadOnly as everywhere.
//
// Thread safety: any thread; changes of one file run one after another, reads beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "store/file_system.h"

namespace isozone {

class PositionalFile {
 public:
  static constexpr uint64_t kSizeMax = uint64_t{1} << 60;  // bytes

  virtual ~PositionalFile() = default;

  virtual uint64_t inode() const = 0;
  virtual uint64_t size() const = 0;  // bytes, as of the last write

  // Reads up to buffer.size() bytes at `offset`; fewer only at the end of the file, 0 beyond it. Holes are zeros.
  virtual Result<size_t> Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) = 0;
  // Writes all of `data` at `offset`, or nothing. kInvalidArgument beyond kSizeMax.
  virtual Status Write(uint64_t offset, std::span<const std::byte> data) = 0;
  // Writes at what is the end of the file when this runs (O_APPEND), and returns that offset.
  virtual Result<uint64_t> Append(std::span<const std::byte> data) = 0;
  // Cuts the file to `size` bytes, or extends it by a hole. It does nothing if the file has that size.
  virtual Status Truncate(uint64_t size) = 0;
  // Promises space for [offset, offset + length) where it has none (fallocate); extends the file by a hole if it is
  // shorter, unless `keep_size`. What is there is not touched. kNoSpace: nothing has changed.
  virtual Status Allocate(uint64_t offset, uint64_t length, bool keep_size) = 0;
  // Return the next offset from `offset` on that has data, or that lies in a hole; the end of the file is a hole
  // (SEEK_DATA, SEEK_HOLE). kNotFound where there is none.
  virtual Result<uint64_t> FindData(uint64_t offset) const = 0;
  virtual Result<uint64_t> FindHole(uint64_t offset) const = 0;

  // Starts writing out what is in memory, without waiting for durability, and reports an earlier error (close(2)).
  virtual Status Flush() = 0;
  // Makes everything written before durable, with size, times and name: it is when this returns OK.
  virtual Status Sync() = 0;

  // These set the lifetime and the class of I/O of what is written from now on. With the next write, the lifetime
  // becomes that of the file; if it is the first write, as if Create had been given that lifetime.
  virtual void SetLifetime(Lifetime lifetime) = 0;
  virtual void SetIoClass(IoClass io_class) = 0;
};

}  // namespace isozone
