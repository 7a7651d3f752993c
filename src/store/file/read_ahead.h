// ReadAhead: double buffering for a scan that goes through a file from front to back (compaction). While a window is
// consumed, the next one is read.
//
//   file   ...consumed... [ window being consumed | window being read )  not yet asked for ...
//
// A window is one stripe of the file: as many units as the file has zones, read from all of them at once (Parallel,
// section 3.2: a read buffer of N MB for N zones, twice). It is dropped once as many bytes as it has were taken from
// it. All windows of a file system together stay within MountOptions::read_ahead_memory, and where that is used up a
// scan reads for itself (read_ahead_memory.h).
//
//   a scan begins   at the front of the file, or where the read before it, which found no windows, has ended
//   it goes on      in the windows, and at their end
//   it has stopped  when other scans of the reader have read kPatience times as many bytes as its windows have, and
//                   nobody has read from these: they are dropped
//   and otherwise   the caller reads for itself
//
// A window that could not be read stays until the scan has passed it: the callers meet the error by themselves, and
// nothing is read ahead twice.
//
// Changes. A change of the file gives it a new generation before it is acknowledged. Windows were read by callers that
// had seen the generation of their time, and a caller that has seen another one drops them. So whoever begins to read
// after a change finds it in the windows, or finds none.
//
// A scan may come in pieces that overtake each other: the kernel cuts a long read of a mounted directory into requests,
// which several threads serve. So a piece may lie anywhere in the windows, and one window that others have passed by is
// kept for those that were overtaken. There is one scan at a time.
//
// Thread safety: any thread; no lock is held while the device reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "store/file/data_path.h"
#include "store/file_system.h"

namespace isozone {

class ReadAhead final : public ReadAheadMemory::Holder {
 public:
  // `read` starts a FileRead of the file, as FileReader::Submit does. `window` returns the bytes of a window.
  ReadAhead(DataPath& data_path, std::function<void(FileRead&)> read, std::function<uint64_t()> window);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();
  // Waits until nothing is being read, and forgets all windows.
  void Stop() { GiveUp(); }
  // Gives up all windows. The last owner of a window waits until it is read.
  std::vector<std::shared_ptr<void>> GiveUp() override;

  // Copies bytes at `offset` from the windows, if that goes on with a scan, or begins one. Returns how many; the caller
  // reads the others, and meets the error there, if there is one. `size` and `generation` (OpenFile::generation) are
  // those of the file.
  size_t TryRead(uint64_t offset, std::span<std::byte> buffer, IoClass io_class, uint64_t size, uint64_t generation);

 private:
  static constexpr size_t kMostWindows = 3;  // passed by, being consumed, being read
  static constexpr uint64_t kNowhere = UINT64_MAX;

  class Window;
  struct FileState {
    uint64_t size = 0;  // bytes
    uint64_t generation = 0;
  };
  // The work that a call does after it has released the lock.
  struct Work {
    std::vector<std::shared_ptr<Window>> to_read;
    std::vector<std::shared_ptr<Window>> gone;  // their destructors wait
    bool found_no_memory = false;
  };

  // Returns the window that has the byte at `offset`; null if there is none.
  std::shared_ptr<Window> WindowAt(uint64_t offset, IoClass io_class, const FileState& file);
  std::shared_ptr<Window> Find(uint64_t offset) const ISOZONE_REQUIRES(mu_);
  bool GoesOnAt(uint64_t offset) const ISOZONE_REQUIRES(mu_);
  // Adds a window, unless it would lie behind the end or there is no memory for it.
  void Add(uint64_t offset, IoClass io_class, uint64_t size, Work& work) ISOZONE_REQUIRES(mu_);
  void Drop(const std::shared_ptr<Window>& window);
  // Notes that the caller reads the last `bytes` before `end` by itself.
  void NoteMiss(uint64_t end, size_t bytes);

  DataPath& data_path_;
  const std::function<void(FileRead&)> read_;
  const std::function<uint64_t()> window_;
  Mutex mu_;
  uint64_t position_ ISOZONE_GUARDED_BY(mu_) = kNowhere;  // where a scan may begin while there are no windows
  uint64_t missed_ ISOZONE_GUARDED_BY(mu_) = 0;           // bytes that were read elsewhere since a window had any
  uint64_t generation_ ISOZONE_GUARDED_BY(mu_) = 0;       // of the file, when windows_ were read
  std::vector<std::shared_ptr<Window>> windows_ ISOZONE_GUARDED_BY(mu_);  // in file order
};

}  // namespace isozone
