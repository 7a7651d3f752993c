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
  uint32_t level0_files = 4;  // so many of them are compacted
  int base_level = 1;         // where level 0 is compacted to; levels between are empty
  // Of each level; more is compacted. That of level 0 is not used, and the last level is never too large.
  std::vector<uint64_t> capacity_bytes = {0};
  uint64_t table_bytes = 4 * kMiB;   // an output is closed by the entry that reaches it
  uint64_t sweep_bytes = 16 * kMiB;  // of the upper level, for each compaction of the picker isozone

  int levels() const { return static_cast<int>(capacity_bytes.size()); }
  int LevelBelow(int level) const { return level == 0 ? base_level : level + 1; }

  // `levels` of them, level 0 included, each `factor` times as large as the one above it. At least 1 is meant by less.
  static LsmLimits Exponential(int levels, uint64_t level1_bytes, double factor);

  // The same from the last level up, so that it holds most of the data however much there is, and little is kept in two
  // versions: RocksDB's level_compaction_dynamic_level_bytes. Level 0 is compacted to the last level at first. A level
  // is put in front of the base level whenever that would be larger than `base_bytes`, 1 at least. No level that holds
  // data is skipped, but one that is not needed holds nothing for long: its capacity is 0 until its data has gone down.
  // From `base_bytes` to the last level, sizes rise as evenly as they can, between half of `factor` and `factor` at a
  // step: compactions write least where every step is the same, and the levels above the last one take a fourth of it
  // at most if the factor is 10. `bytes`: what each level holds; 2 levels at least.
  static LsmLimits FromLastLevel(std::span<const uint64_t> bytes, uint64_t base_bytes, double factor);
};

}  // namespace isozone
