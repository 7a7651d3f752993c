// What GC schemes compute alike: sorted candidates, enough victims for a goal, the level of a zone's data.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "store/zone/gc_scheme.h"

namespace isozone {

// Returns the candidates sorted by `key`, the lowest first; of equal ones the lowest zone first.
template <typename Key>
std::vector<GcCandidate> SortedBy(std::span<const GcCandidate> candidates, Key key) {
  std::vector<GcCandidate> sorted(candidates.begin(), candidates.end());
  std::sort(sorted.begin(), sorted.end(), [&](const GcCandidate& a, const GcCandidate& b) {
    return std::make_tuple(std::invoke(key, a), a.zone) < std::make_tuple(std::invoke(key, b), b.zone);
  });
  return sorted;
}

inline std::vector<ZoneId> ZonesOf(std::span<const GcCandidate> candidates) {
  std::vector<ZoneId> zones;
  for (const GcCandidate& c : candidates) zones.push_back(c.zone);
  return zones;
}

// Returns the zones with the lowest keys, in order, that together give back `bytes`; at least one, if there is any.
template <typename Key>
std::vector<ZoneId> EnoughBy(std::span<const GcCandidate> candidates, Key key, double bytes) {
  using Ranked =
      std::tuple<decltype(std::invoke(key, candidates.front())), ZoneId, uint64_t>;  // with the bytes that are gained
  std::vector<Ranked> heap;
  heap.reserve(candidates.size());
  for (const GcCandidate& c : candidates) heap.emplace_back(std::invoke(key, c), c.zone, c.written - c.valid);
  std::ranges::make_heap(heap, std::greater());
  std::vector<ZoneId> zones;
  double gained = 0;
  while (!heap.empty() && (zones.empty() || gained < bytes)) {
    std::ranges::pop_heap(heap, std::greater());
    zones.push_back(std::get<1>(heap.back()));
    gained += static_cast<double>(std::get<2>(heap.back()));
    heap.pop_back();
  }
  return zones;
}

// Returns how many more bytes must be free until `percent` of the space is.
inline double Missing(const GcSpace& space, double percent) {
  return (percent - space.free_percent()) / 100 * static_cast<double>(space.capacity);
}

// Returns the level of the LSM tree that the zone's data is of; derived from the lifetime where it is not known.
inline int LevelOf(const GcCandidate& c) {
  if (c.data.level != DataClass::kNoLevel) return c.data.level;
  return std::max(0, static_cast<int>(c.data.lifetime) - static_cast<int>(Lifetime::kMedium));
}

// Returns whether the zone holds tables or blobs: these have a level, or at least a hint of their lifetime.
inline bool IsOfTree(const GcCandidate& c) {
  return c.data.level != DataClass::kNoLevel || c.data.lifetime > Lifetime::kNone;
}

}  // namespace isozone
