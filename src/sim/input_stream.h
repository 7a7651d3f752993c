// InputStream: the files of one level, as a compaction reads them in virtual time: one after another, each from front to
// back, in windows. The first window of a file is waited for. Further ones are, too, unless they are read ahead: while
// one window is consumed, the next one of the file is read (fs/file/read_ahead.h).
//
// What is in a window comes from all zones of the file alike.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/device_times.h"
#include "sim/virtual_zones.h"

namespace isozone {

class InputStream {
 public:
  struct Window {
    uint64_t bytes = 0;
    uint64_t bytes_of_zone = 0;  // and so many for each zone that the file lies in; the sum is more than 0
    bool ahead = false;
  };
  explicit InputStream(const Window& window) : window_(window) {}

  // A file with at least a byte.
  void Add(const StoredFile& file);
  uint64_t bytes() const { return bytes_; }
  // Consumes the next `bytes`, or what is left: the time at which they are in memory. What is read of the device is
  // added to `read_bytes`.
  int64_t Read(DeviceTimes& times, int64_t now_ns, uint64_t bytes, uint64_t& read_bytes);

 private:
  struct File {
    std::vector<FilePlace> places;
    uint64_t bytes = 0;
    uint64_t window = 0;  // bytes
  };
  struct Pending {
    uint64_t end = 0;  // in the file
    int64_t ready_ns = 0;
  };

  // Reads the window behind the last one, if there is more of the file.
  void StartWindow(DeviceTimes& times, int64_t now_ns, uint64_t& read_bytes);

  const Window window_;
  std::vector<File> files_;
  uint64_t bytes_ = 0;
  size_t next_ = 0;              // file
  uint64_t done_ = 0;            // bytes of it
  uint64_t asked_ = 0;           // bytes of it, that windows cover
  std::deque<Pending> pending_;  // windows of it, that are not consumed
};

}  // namespace isozone
