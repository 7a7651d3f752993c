#include "rocksdb/lsm/published/gear_picker.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

TEST(GearPickerTest, TableOfCases) {
  ExpectPicks(
      GearPicker(),
      {
          {"the oldest file of the oldest zone",
           1,
           {{1, 5, "a-b", kMiB, {2}}, {1, 2, "f-h", kMiB, {1}}, {1, 3, "k-m", kMiB, {1}}, {2, 4, "g-j", kMiB, {9}}},
           {},
           "L1: 2, L2: 4 -> L2, next k"},
          {"nothing is moved", 1, {{1, 1, "a-b", kMiB, {2}}}, {}, "L1: 1 -> L2, next round"},
          {"outputs that overlap the window one level further down sink",
           1,
           {{1, 1, "a-q", kMiB, {1}}, {3, 2, "b-c", kMiB, {5}}, {3, 3, "f-h", kMiB, {4}}, {3, 4, "k-m", kMiB, {6}}},
           {},
           "L1: 1 -> L2, next round, cut b f, short b-f"},
          {"up to the end, where nothing follows",
           1,
           {{1, 1, "a-q", kMiB, {1}}, {3, 5, "b-c", kMiB, {5}}, {3, 3, "f-h", kMiB, {4}}, {3, 4, "k-m", kMiB, {4}}},
           {},
           "L1: 1 -> L2, next round, cut f, short f-"},
          {"up to the file that follows the inputs",
           1,
           {{1, 1, "a-g", kMiB, {1}}, {3, 3, "f-h", kMiB, {4}}, {3, 4, "k-m", kMiB, {5}}},
           {},
           "L1: 1 -> L2, next round, cut f, short f-k"},
          {"what is to sink goes first, with its neighbours",
           1,
           {{1, 1, "a-g", kMiB, {1}},
            {2, 2, "a-b", kMiB, {2}},
            {2, 3, "c-d", kMiB, {3}, true},
            {2, 4, "e-f", kMiB, {3}, true},
            {2, 5, "h-k", kMiB, {2}},
            {3, 6, "b-e", kMiB, {5}}},
           {},
           "L2: 3 4, L3: 6 -> L3, next h"},
          {"without zones, the file at the pointer",
           1,
           {{1, 1, "a-g", kMiB}, {1, 2, "h-k", kMiB}},
           {{1, "h"}},
           "L1: 2 -> L2, next round"},
      });
}

TEST(GearPickerTest, TheWindowIsATenthOfTheZones) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 100, "00-99", kMiB, {100}}});
  for (uint32_t i = 0; i < 11; ++i) {
    AddFiles(tree, {{3, i + 1, fmt::format("{:02}-{:02}", 4 * i + 1, 4 * i + 3), kMiB, {i}}});
  }
  // Two of eleven: the oldest two.
  EXPECT_EQ("L1: 100 -> L2, next round, cut 01 09, short 01-09", Describe(GearPicker().Pick(tree)));
}

}  // namespace
}  // namespace isozone
