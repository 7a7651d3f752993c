#include "conventional/extent_allocator.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace isozone {

ExtentAllocator::ExtentAllocator(uint64_t first, uint64_t end) : free_(end - first), cursor_(first) {
  if (free_ > 0) runs_[first] = free_;
}

void ExtentAllocator::Allocate(uint64_t count, std::vector<Extent>& extents) {
  assert(count <= free_);
  if (count == 0) return;
  Place place = Next(cursor_);
  for (size_t looked_at = 0; place.count < count && looked_at <= runs_.size(); ++looked_at) {
    place = Next(place.block + place.count);
  }
  if (place.count >= count) return Take(place, count, extents);
  while (count > 0) {
    place = Next(cursor_);
    const uint64_t part = std::min(count, place.count);
    Take(place, part, extents);
    count -= part;
  }
}

ExtentAllocator::Place ExtentAllocator::Next(uint64_t block) {
  const auto behind = runs_.upper_bound(block);
  if (behind != runs_.begin()) {
    const auto run = std::prev(behind);
    const uint64_t end = run->first + run->second;
    if (end > block) return {run, block, end - block};
  }
  const auto run = behind == runs_.end() ? runs_.begin() : behind;
  return {run, run->first, run->second};
}

void ExtentAllocator::Take(const Place& place, uint64_t count, std::vector<Extent>& extents) {
  const uint64_t first = place.run->first;
  const uint64_t end = first + place.run->second;
  runs_.erase(place.run);
  if (first < place.block) runs_[first] = place.block - first;
  if (place.block + count < end) runs_[place.block + count] = end - (place.block + count);
  free_ -= count;
  cursor_ = place.block + count;
  if (!extents.empty() && extents.back().block + extents.back().count == place.block) {
    extents.back().count += count;
  } else {
    extents.push_back({place.block, count});
  }
}

void ExtentAllocator::Free(const Extent& extent) {
  free_ += extent.count;
  auto run = runs_.emplace(extent.block, extent.count).first;
  if (const auto next = std::next(run); next != runs_.end() && run->first + run->second == next->first) {
    run->second += next->second;
    runs_.erase(next);
  }
  if (run == runs_.begin()) return;
  const auto previous = std::prev(run);
  if (previous->first + previous->second != run->first) return;
  previous->second += run->second;
  runs_.erase(run);
}

}  // namespace isozone
