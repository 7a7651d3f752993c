#include "rocksdb/lsm/published/leveled_picker.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

TEST(LeveledPickerTest, TableOfCases) {
  ExpectPicks(LeveledPicker(), {
                                   {"an empty tree", 1, {}, {}, "none"},
                                   {"all of level 0, with what it overlaps",
                                    0,
                                    {{0, 1, "a-m"}, {0, 2, "c-p"}, {1, 3, "b-d"}, {1, 4, "o-r"}, {1, 5, "s-z"}},
                                    {},
                                    "L0: 1 2, L1: 3 4 -> L1"},
                                   {"a single file of level 0 that overlaps nothing",
                                    0,
                                    {{0, 1, "a-m"}, {1, 2, "n-z"}},
                                    {},
                                    "L0: 1 moved to L1"},
                                   {"the first file, without a pointer",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {2, 3, "a-c"}, {2, 4, "d-g"}, {2, 5, "h-k"}},
                                    {},
                                    "L1: 1, L2: 3 4 -> L2, next f"},
                                   {"the file at the pointer",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {2, 3, "g-k"}},
                                    {{1, "f"}},
                                    "L1: 2, L2: 3 -> L2, next round"},
                                   {"a file that was written across the pointer is left for the next round",
                                    1,
                                    {{1, 1, "b-g"}, {1, 2, "h-k"}, {2, 3, "h-z"}},
                                    {{1, "f"}},
                                    "L1: 2, L2: 3 -> L2, next round"},
                                   {"behind the last file a round begins",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {2, 3, "a-c"}},
                                    {{1, "x"}},
                                    "L1: 1, L2: 3 -> L2, next f"},
                                   {"what lies within the range joins",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {1, 4, "j-m"}, {2, 3, "c-i"}},
                                    {},
                                    "L1: 1 2, L2: 3 -> L2, next j"},
                                   {"what joins brings what it overlaps along",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {2, 3, "c-e"}, {2, 4, "g-k"}},
                                    {},
                                    "L1: 1, L2: 3 -> L2, next f"},
                                   {"neighbours that share a user key stay together",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "d-h"}, {1, 3, "j-n"}, {2, 4, "h-i"}, {2, 5, "i-m"}},
                                    {},
                                    "L1: 1 2, L2: 4 5 -> L2, next j"},
                                   {"a file that overlaps nothing is moved",
                                    1,
                                    {{1, 1, "b-d"}, {1, 2, "f-h"}, {2, 3, "e-k"}},
                                    {},
                                    "L1: 1 moved to L2, next f"},
                                   {"but not one that is too large",
                                    1,
                                    {{1, 1, "b-d", 4 * kMiB + 1}, {2, 3, "e-k"}},
                                    {},
                                    "L1: 1 -> L2, next round"},
                               });
}

TEST(LeveledPickerTest, TheLevelThatExceedsItsLimitMostComesFirst) {
  LsmLimits limits;
  limits.capacity_bytes = {0, 4 * kMiB, 4 * kMiB, 40 * kMiB};
  LsmTree tree(limits);
  AddFiles(tree, {{1, 1, "a-b"}, {1, 2, "c-d"}, {2, 3, "a-b"}, {2, 4, "c-d"}, {2, 5, "e-f"}});
  EXPECT_EQ("L2: 3 moved to L3, next c", Describe(LeveledPicker().Pick(tree)));
  // Four files of level 0 exceed it less, eight as much, and the upper level comes first then.
  for (uint64_t number = 10; number < 18; ++number) AddFiles(tree, {{0, number, "a-z"}});
  ASSERT_TRUE(tree.RemoveFile(5).ok());
  EXPECT_EQ("L0: 10 11 12 13 14 15 16 17, L1: 1 2 -> L1", Describe(LeveledPicker().Pick(tree)));
}

TEST(LeveledPickerTest, AFileThatDoesNotConflictIsTakenInstead) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-b"}, {1, 2, "c-d"}, {1, 3, "f-g"}, {2, 4, "a-c"}, {2, 5, "g-h"}});
  const LeveledPicker picker;
  ASSERT_TRUE(tree.Begin(*picker.Pick(tree)).ok());
  // File 2 overlaps file 4, which is being compacted.
  EXPECT_EQ("L1: 3, L2: 5 -> L2, next round", Describe(picker.Pick(tree)));
  ASSERT_TRUE(tree.Begin(*picker.Pick(tree)).ok());
  EXPECT_EQ("none", Describe(picker.Pick(tree)));
}

TEST(CompactionPickerTest, PickersAreFoundByName) {
  for (const auto name : CompactionPickerNames()) EXPECT_EQ(name, MakeCompactionPicker(name).value()->name());
  EXPECT_TRUE(MakeCompactionPicker("level").status().Is(StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace isozone
