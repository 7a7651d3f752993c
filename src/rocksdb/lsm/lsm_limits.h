// The shape that an LSM tree is to have.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace isozone {

struct LsmLimits {
  uint32_t level0_files = 4;  // level 0 is compacted once it has so many files
  int base_level = 1;         // the level to which level 0 is compacted; those between are empty
  // The size of each level at which it is compacted. The entry of level 0 is not used, and the last level is never
  // compacted for its size.
  std::vector<uint64_t> capacity_bytes = {0};
  uint64_t table_bytes = 4 * kMiB;   // an output is closed by the entry that reaches it
  uint64_t sweep_bytes = 16 * kMiB;  // the most that the picker `isozone` takes from the upper level for a compaction

  int levels() const { return static_cast<int>(capacity_bytes.size()); }
  int LevelBelow(int level) const { return level == 0 ? base_level : level + 1; }

  // Returns limits for `levels` levels, level 0 included, each `factor` times as large as the one above it. A factor
  // below 1 counts as 1.
  static LsmLimits Exponential(int levels, uint64_t level1_bytes, double factor);

  // Returns limits that are sized from the last level up, so that it holds most of the data and little is kept in two
  // versions (RocksDB's level_compaction_dynamic_level_bytes). `bytes` says what each level holds, and has 2 entries at
  // least. Level 0 is compacted to the last level at first. A level is put in front of the base level whenever that
  // would become larger than `base_bytes`, which is at least 1. No level that holds data is skipped, but one that is
  // not needed has the capacity 0 until its data has gone down. From the base level to the last one, sizes rise by the
  // same step, between half of `factor` and `factor`: compactions write least where all steps are equal, and with a
  // factor of 10 all upper levels together take at most a fourth of the last one.
  static LsmLimits FromLastLevel(std::span<const uint64_t> bytes, uint64_t base_bytes, double factor);
};

}  // namespace isozone
