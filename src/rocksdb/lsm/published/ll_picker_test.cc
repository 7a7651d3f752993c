#include "rocksdb/lsm/published/ll_picker.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

TEST(LlPickerTest, TableOfCases) {
  ExpectPicks(LlPicker(),
              {
                  {"level 0 as ever, but cut at the pointer of level 1",
                   0,
                   {{0, 1, "a-m"}, {1, 3, "b-d"}, {1, 4, "k-z"}},
                   {{1, "k"}},
                   "L0: 1, L1: 3 4 -> L1, cut k"},
                  {"nothing is moved", 1, {{1, 1, "b-d"}, {1, 2, "f-h"}}, {}, "L1: 1 -> L2, next f"},
                  {"the window expands up to the next pointer",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "g-h"}, {2, 4, "k-m"}, {2, 5, "n-o"}, {2, 6, "r-s"}},
                   {{1, "f"}},
                   "L1: 1, L2: 3 4 5 -> L2, next p"},
                  {"but not to a file that overlaps the next upper one",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "g-h"}, {2, 4, "k-p"}},
                   {{1, "f"}},
                   "L1: 1, L2: 3 -> L2, next p"},
                  {"the window begins at the pointer, and not at the beginning of the level",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "a-b"}, {2, 4, "c-d"}, {2, 5, "e-h"}},
                   {{1, "e"}},
                   "L1: 1, L2: 5 -> L2, next p"},
                  {"also where nothing overlaps",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "a-b"}, {2, 4, "d-e"}},
                   {{1, "c"}},
                   "L1: 1, L2: 4 -> L2, next p"},
                  {"the first compaction of a round begins at the beginning of all keys",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "a-b"}, {2, 4, "g-h"}},
                   {},
                   "L1: 1, L2: 3 4 -> L2, next p"},
                  {"the last one ends at the end of all keys",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "n-o"}, {2, 4, "q-r"}, {2, 5, "s-t"}},
                   {{1, "p"}},
                   "L1: 2, L2: 4 5 -> L2, next round"},
                  {"an output is cut at the next pointer, and what follows is short-lived",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "e-m"}},
                   {{1, "f"}},
                   "L1: 1, L2: 3 -> L2, next k, cut k, short k-"},
                  {"upper files within the range join, and the window expands again",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "h-i"}, {1, 3, "t-u"}, {2, 4, "g-k"}, {2, 5, "m-n"}, {2, 6, "s-u"}},
                   {{1, "f"}},
                   "L1: 1 2, L2: 4 5 -> L2, next t"},
                  {"an output is cut at the pointer of the lower level",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "p-q"}, {2, 3, "e-h"}, {2, 4, "j-n"}},
                   {{1, "f"}, {2, "j"}},
                   "L1: 1, L2: 3 4 -> L2, next p, cut j"},
                  {"both cuts, in order",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "e-h"}, {2, 4, "j-n"}},
                   {{1, "f"}, {2, "f"}},
                   "L1: 1, L2: 3 -> L2, next k, cut f"},
                  {"both cuts across the next pointer",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "g-m"}},
                   {{1, "f"}, {2, "g"}},
                   "L1: 1, L2: 3 -> L2, next k, cut g k, short k-"},
                  {"a pointer of the lower level at the beginning cuts nothing",
                   1,
                   {{1, 1, "f-g"}, {2, 3, "f-h"}},
                   {{1, "f"}, {2, "f"}},
                   "L1: 1, L2: 3 -> L2, next round"},
                  {"both pointers at one key",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "g-m"}},
                   {{1, "f"}, {2, "k"}},
                   "L1: 1, L2: 3 -> L2, next k, cut k, short k-"},
              });
}

TEST(LlPickerTest, ASweepWaitsForWhatRuns) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-c"}, {1, 2, "e-g"}, {1, 3, "p-q"}, {2, 4, "b-f"}});
  const LlPicker picker;
  const auto job = tree.Begin(*picker.Pick(tree));
  ASSERT_TRUE(job.ok());
  EXPECT_EQ("none", Describe(picker.Pick(tree)));
  ASSERT_TRUE(tree.Finish(*job, {}).ok());
  EXPECT_EQ("L1: 2 -> L2, next p", Describe(picker.Pick(tree)));
}

TEST(LlPickerTest, ThePointerStaysBeforeWhatIsBeingWritten) {
  LsmLimits limits = OnlyLevel(2);
  limits.capacity_bytes[1] = 1;
  LsmTree tree(limits);
  AddFiles(tree, {{1, 1, "g-m", 4 * kMiB + 1}, {2, 2, "a-c"}, {2, 3, "h-k"}});
  const LlPicker picker;
  CompactionPointers pointers;
  pointers.Set(1, "g");
  tree.pointers() = pointers;
  auto pick = picker.Pick(tree);
  ASSERT_EQ("L2: 2 -> L3, next h", Describe(pick));
  // Level 1 is compacted to g-m of level 2 meanwhile, so a file of level 2 may begin at g.
  CompactionPick above;
  above.inputs = {{1, {1}}, {2, {3}}};
  above.output_level = 2;
  above.smallest = "g";
  above.largest = "m";
  ASSERT_TRUE(tree.Begin(above).ok());
  EXPECT_EQ("L2: 2 -> L3, next g", Describe(picker.Pick(tree)));
}

}  // namespace
}  // namespace isozone
