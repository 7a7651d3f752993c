// The free blocks of an ordinary file system, given out next-fit: each request is served from the first run of free
// blocks behind the last one that holds it all, round the device; where none does, from those there are, in the same
// order. This is how ext4 allocates what is streamed to large files (its goal is where the last one ended), so a device
// without TRIM is written all over before anything is used again.
//
// Invariants: runs are disjoint, neither empty nor adjacent; free() is the sum of them.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace isozone {

struct Extent {
  uint64_t block = 0;  // the first
  uint64_t count = 0;  // > 0
  bool operator==(const Extent&) const = default;
};

class ExtentAllocator {
 public:
  // All of [first, end) is free.
  ExtentAllocator(uint64_t first, uint64_t end);

  uint64_t free() const { return free_; }  // blocks
  // Takes `count` blocks, which is at most free(), and appends them to `extents`.
  void Allocate(uint64_t count, std::vector<Extent>& extents);
  // Takes back what was allocated.
  void Free(const Extent& extent);

 private:
  using Runs = std::map<uint64_t, uint64_t>;

  // A place in a run from which blocks can be taken.
  struct Place {
    Runs::iterator run;
    uint64_t block = 0;
    uint64_t count = 0;  // free ones from there on
  };

  // The first free block at or behind `block`, round the device. There is one.
  Place Next(uint64_t block);
  void Take(const Place& place, uint64_t count, std::vector<Extent>& extents);

  Runs runs_;  // first block of a free run -> its length
  uint64_t free_ = 0;
  uint64_t cursor_ = 0;  // behind what was allocated last
};

}  // namespace isozone
