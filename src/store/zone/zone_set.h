// ZoneSet: a set of zones out of a fixed number, in order of id. It is a bitmap with further bitmaps above it, each of
// which says which words of the one below are not zero. Every operation touches one word on each level: 4 levels hold
// 16 million zones. A set of 100,000 zones takes 13 KiB, so operations cost hardly more on a large device.
//
// Thread safety: none.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

class ZoneSet {
 public:
  // Starts empty; can hold zones 0 .. zone_count - 1.
  explicit ZoneSet(uint32_t zone_count) {
    size_t bits = zone_count;
    do {
      bits = (bits + 63) / 64;
      levels_.emplace_back(bits, 0);
    } while (bits > 1);
  }

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool Contains(ZoneId zone) const { return (levels_[0][zone.value() / 64] >> (zone.value() % 64) & 1) != 0; }

  void Insert(ZoneId zone) {
    assert(!Contains(zone));
    ++size_;
    size_t index = zone.value();
    for (auto& level : levels_) {
      uint64_t& word = level[index / 64];
      const bool summarised = word != 0;
      word |= uint64_t{1} << (index % 64);
      if (summarised) return;
      index /= 64;
    }
  }

  void Erase(ZoneId zone) {
    assert(Contains(zone));
    --size_;
    size_t index = zone.value();
    for (auto& level : levels_) {
      uint64_t& word = level[index / 64];
      word &= ~(uint64_t{1} << (index % 64));
      if (word != 0) return;
      index /= 64;
    }
  }

  // Returns all zones in order.
  std::vector<ZoneId> All() const {
    std::vector<ZoneId> zones;
    zones.reserve(size_);
    for (auto zone = First(); zone; zone = FirstFrom(ZoneId(zone->value() + 1))) zones.push_back(*zone);
    return zones;
  }

  std::optional<ZoneId> First() const { return FirstFrom(ZoneId(0)); }

  // Returns the lowest zone that is not below `zone`.
  std::optional<ZoneId> FirstFrom(ZoneId zone) const {
    size_t index = zone.value();
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (index / 64 >= levels_[level].size()) return std::nullopt;
      const uint64_t word = levels_[level][index / 64] >> (index % 64);
      if (word != 0) return Lowest(level, index + static_cast<size_t>(std::countr_zero(word)));
      index = index / 64 + 1;
    }
    return std::nullopt;
  }

 private:
  // Returns the lowest zone below bit `index` of `level`.
  ZoneId Lowest(size_t level, size_t index) const {
    while (level-- > 0) index = index * 64 + static_cast<size_t>(std::countr_zero(levels_[level][index]));
    return ZoneId(static_cast<uint32_t>(index));
  }

  std::vector<std::vector<uint64_t>> levels_;  // lowest first
  uint32_t size_ = 0;
};

}  // namespace isozone
