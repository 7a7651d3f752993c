// What tests of the pickers share: trees in short, and decisions as text.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

// A file with its range of keys as "c-f", and what else a case is about.
struct TestFile {
  int level = 0;
  uint64_t number = 0;
  std::string range;  // "c-f"
  uint64_t bytes = 4 * kMiB;
  std::vector<uint32_t> zones = {};
  bool short_lived = false;
};

inline LsmFile MakeFile(const TestFile& given) {
  LsmFile file;
  file.number = given.number;
  const size_t dash = given.range.find('-');
  file.smallest = given.range.substr(0, dash);
  file.largest = given.range.substr(dash + 1);
  file.bytes = given.bytes;
  for (const uint32_t zone : given.zones) file.zones.emplace_back(zone);
  file.short_lived = given.short_lived;
  return file;
}

inline void AddFiles(LsmTree& tree, const std::vector<TestFile>& files) {
  for (const TestFile& file : files) {
    const Status added = tree.AddFile(file.level, MakeFile(file));
    ASSERT_TRUE(added.ok()) << added.ToString();
  }
}

// Returns limits for five levels, of which `level` is too large with any file in it and the others are not.
inline LsmLimits OnlyLevel(int level) {
  LsmLimits limits;
  limits.level0_files = level == 0 ? 1 : 100;
  limits.capacity_bytes.assign(5, kTiB);
  limits.capacity_bytes[static_cast<size_t>(level)] = 1;
  return limits;
}

// Returns a decision as text, "L1: 3 4, L2: 7 -> L2, next m, cut m, short m-", or "none".
inline std::string Describe(const std::optional<CompactionPick>& pick) {
  if (!pick) return "none";
  std::string text;
  for (const auto& input : pick->inputs) {
    text += fmt::format("{}L{}: {}", text.empty() ? "" : ", ", input.level, fmt::join(input.files, " "));
  }
  text += fmt::format(" {} L{}", pick->trivial_move ? "moved to" : "->", pick->output_level);
  if (pick->advance) text += fmt::format(", next {}", pick->advance->key.value_or("round"));
  if (!pick->cut_keys.empty()) text += fmt::format(", cut {}", fmt::join(pick->cut_keys, " "));
  if (!pick->preferred_cut_keys.empty()) text += fmt::format(", align {}", fmt::join(pick->preferred_cut_keys, " "));
  for (const KeySpan& span : pick->short_lived) text += fmt::format(", short {}-{}", span.begin, span.end.value_or(""));
  return text;
}

// One row of the table of a picker: the tree, where the sweep is, and what is to be decided.
struct PickCase {
  std::string what;
  int level = 1;  // the level that is too large
  std::vector<TestFile> files;
  std::vector<std::pair<int, std::string>> pointers;
  std::string picked;
};

// Decides every row, and begins what was decided.
inline void ExpectPicks(const CompactionPicker& picker, const std::vector<PickCase>& cases) {
  for (const PickCase& row : cases) {
    SCOPED_TRACE(row.what);
    LsmTree tree(OnlyLevel(row.level));
    AddFiles(tree, row.files);
    CompactionPointers pointers;
    for (const auto& [level, key] : row.pointers) pointers.Set(level, key);
    tree.pointers() = pointers;
    const auto pick = picker.Pick(tree);
    EXPECT_EQ(row.picked, Describe(pick));
    if (!pick) continue;
    const auto begun = tree.Begin(*pick);
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
  }
}

}  // namespace isozone
