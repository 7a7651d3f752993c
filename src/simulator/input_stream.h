// InputStream: the files of one level, as a compaction reads them in virtual time: one after another, each from front
// to back, in windows. The first window of a file is waited for. Further ones are, too, unless they are read ahead:
// while one window is consumed, the next one of the file is read (store/file/read_ahead.h).
//
// What is in a window comes from all zones of the file alike. Who consumes long pieces at a time has as much read ahead
// as it consumes, since a database consumes it bit by bit. The memory for reading ahead is not bounded. RocksDB merges
// the files of level 0 side by side, which is not modelled either.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "simulator/device_times.h"
#include "simulator/virtual_zones.h"

namespace isozone {

class InputStream {
 public:
  struct Windows {
    uint64_t bytes = 0;       // of a window; 0: as a striped file is read (ReadWindowOf)
    uint64_t unit_bytes = 1;  // of a stripe
    uint32_t width = 1;       // zones of a stripe at most
    bool ahead = false;
  };
  explicit InputStream(const Windows& windows) : windows_(windows) {}

  // Adds a file behind the others. A file without bytes adds nothing.
  void Add(const StoredFile& file);
  uint64_t bytes() const { return bytes_; }
  // Consumes the next `bytes`, or all that is left, and returns the time at which they are in memory. Adds the bytes
  // that the device reads for it to `read_bytes`.
  int64_t Read(DeviceTimes& times, int64_t now_ns, uint64_t bytes, uint64_t& read_bytes);

 private:
  struct Part {
    ZoneId zone;
    uint64_t bytes = 0;  // of the file in this zone
  };
  struct File {
    std::vector<Part> parts;  // one for each zone
    uint64_t bytes = 0;
    uint64_t window = 0;  // bytes
  };
  struct Pending {
    uint64_t end = 0;  // in the file
    int64_t ready_ns = 0;
  };

  // Starts to read the window behind the last one. Returns false if the file has no more.
  bool StartWindow(DeviceTimes& times, int64_t now_ns, uint64_t& read_bytes);

  const Windows windows_;
  std::vector<File> files_;
  uint64_t bytes_ = 0;
  size_t next_ = 0;              // the file that is read
  uint64_t done_ = 0;            // bytes of that file that were consumed
  uint64_t asked_ = 0;           // bytes of that file that windows cover
  std::deque<Pending> pending_;  // windows of that file that are not consumed
};

}  // namespace isozone
