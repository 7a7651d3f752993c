// The shape that an LSM tree is to have.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace isozone {

struct LsmLimits {
  uint32_t level0_files = 4;  // so many of them are compacted
  int base_level = 1;         // where level 0 is compacted to; levels between are empty
  // Of each level; more is compacted. That of level 0 is not used, and the last level is never too large.
  std::vector<uint64_t> capacity_bytes = {0};
  uint64_t table_bytes = 4 * kMiB;   // an output is closed by the entry that reaches it
  uint64_t sweep_bytes = 16 * kMiB;  // of the upper level, for each compaction of the picker isozone

  int levels() const { return static_cast<int>(capacity_bytes.size()); }
  int LevelBelow(int level) const { return level == 0 ? base_level : level + 1; }

  // `levels` of them, level 0 included, each `factor` times as large as the one above it.
  static LsmLimits Exponential(int levels, uint64_t level1_bytes, uint64_t factor) {
    LsmLimits limits;
    for (uint64_t bytes = level1_bytes; limits.levels() < levels; bytes *= factor) {
      limits.capacity_bytes.push_back(bytes);
    }
    return limits;
  }
};

}  // namespace isozone
