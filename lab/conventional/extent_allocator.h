// ExtentAllocator: the free blocks of an ordinary file system, allocated next-fit. Each request is served from the
// first run of free blocks behind the last allocation that holds all of it; the search wraps around at the end of the
// device. If no run is long enough, the request takes the runs that there are, in the same order. ext4 allocates in
// this way for data that is streamed to large files (its goal is the end of the last one). So without TRIM, all of the
// device is written before anything is used again.
//
// Invariants: runs are disjoint, and neither empty nor adjacent; free() is their sum.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace isozone {

struct Extent {
  uint64_t block = 0;  // the first block
  uint64_t count = 0;  // > 0
  bool operator==(const Extent&) const = default;
};

class ExtentAllocator {
 public:
  // At first, all of [first, end) is free.
  ExtentAllocator(uint64_t first, uint64_t end);

  uint64_t free() const { return free_; }  // blocks
  // Takes `count` blocks, which is at most free(), and appends them to `extents`.
  void Allocate(uint64_t count, std::vector<Extent>& extents);
  // Takes back an extent that was allocated.
  void Free(const Extent& extent);

 private:
  using Runs = std::map<uint64_t, uint64_t>;

  // A place in a run from which blocks can be taken.
  struct Place {
    Runs::iterator run;
    uint64_t block = 0;
    uint64_t count = 0;  // free blocks from there on
  };

  // The first free block at or behind `block`, with wrap-around. There must be one.
  Place Next(uint64_t block);
  void Take(const Place& place, uint64_t count, std::vector<Extent>& extents);

  Runs runs_;  // first block of a free run -> its length
  uint64_t free_ = 0;
  uint64_t cursor_ = 0;  // behind the last allocation
};

}  // namespace isozone
