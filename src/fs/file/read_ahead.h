// ReadAhead: double buffering for one reader that goes through a file from front to back (compaction). While a window
// is consumed, the next one is read.
//
//   file   ...consumed... [ window being consumed | window being read )  not yet asked for ...
//
// A window is one stripe of the file: as many units as the file has zones, read from all of them at once (Parallel,
// section 3.2: a read buffer of N MB for N zones, twice). Windows live from the first read of a scan to the end of the
// file, or of the reader; all of a file system together stay within MountOptions::read_ahead_memory, and where that is
// used up a scan reads for itself.
//
// One scan at a time: whoever comes while another thread is inside, or reads elsewhere, reads for itself.
//
// Thread safety: any thread; nobody waits for another caller, and no lock is held while the device reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "base/status.h"
#include "fs/file/mount_context.h"
#include "fs/file_system.h"

namespace isozone {

class ReadAhead {
 public:
  // `read` starts a FileRead of the file, as FileReader::Submit does; `window` gives the bytes of a window.
  ReadAhead(MountContext& context, std::function<void(FileRead&)> read, std::function<uint64_t()> window)
      : context_(context), read_(std::move(read)), window_(std::move(window)) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() { Stop(); }
  // Waits for what is being read and forgets it. No TryRead is under way.
  void Stop();

  // Copies what lies at `offset` from the windows, if that goes on with a scan, or begins one at the front of the file.
  // Returns how much: what is missing the caller has to read, and meets the error there, if there is one. `size` and
  // `generation` (OpenFile::generation): of the file.
  size_t TryRead(uint64_t offset, std::span<std::byte> buffer, IoClass io_class, uint64_t size, uint64_t generation);

 private:
  struct Window {
    AlignedBuffer memory;
    FileRead read;
    Latch latch;
    uint64_t end() const { return read.offset + read.buffer.size(); }
  };

  size_t Scan(std::span<std::byte> buffer, IoClass io_class, uint64_t size);
  // False: it would lie behind the end, or no memory is left for it.
  bool StartWindow(uint64_t offset, IoClass io_class, uint64_t size);
  void DropFront();

  MountContext& context_;
  const std::function<void(FileRead&)> read_;
  const std::function<uint64_t()> window_;
  std::atomic<bool> inside_{false};  // some thread owns what follows
  uint64_t position_ = 0;            // where the scan goes on
  uint64_t generation_ = 0;          // of the file that the windows are of
  std::deque<Window> windows_;       // at most two, one behind the other
};

}  // namespace isozone
