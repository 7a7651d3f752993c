#include "rocksdb/lsm/isozone_picker.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

TEST(IsozonePickerTest, TableOfCases) {
  ExpectPicks(IsozonePicker(),
              {
                  {"an expanded window and both cuts, as `ll`",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {1, 3, "r-s"}, {1, 4, "t-u"}, {2, 5, "e-h"}, {2, 6, "i-v"}},
                   {{1, "e"}, {2, "f"}},
                   "L1: 1, L2: 5 -> L2, next k, cut f"},
                  {"a window that ends where no lower file reaches across",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {1, 3, "r-s"}, {1, 4, "t-u"}, {2, 5, "e-h"}, {2, 6, "i-q"}},
                   {{1, "e"}, {2, "f"}},
                   "L1: 1 2, L2: 5 6 -> L2, next r, cut f"},
                  {"outputs are aligned to the level below them",
                   1,
                   {{1, 1, "f-g"}, {2, 2, "f-k"}, {3, 3, "a-f"}, {3, 4, "g-h"}, {3, 5, "i-m"}, {3, 6, "n-o"}},
                   {},
                   "L1: 1, L2: 2 -> L2, next round, align g i"},
                  {"those of level 0 as well, and cut at the pointer",
                   0,
                   {{0, 1, "a-k"}, {1, 2, "c-d"}, {2, 3, "b-e"}, {2, 4, "f-l"}},
                   {{1, "d"}},
                   "L0: 1, L1: 2 -> L1, cut d, align b f"},
                  {"what has nothing below it is moved",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "a-b"}, {2, 4, "m-n"}, {3, 5, "a-z"}},
                   {{1, "f"}},
                   "L1: 1 moved to L2, next k"},
                  {"also beside others that lie below, up to the next pointer or the end of the level",
                   1,
                   {{1, 1, "f-g"}, {1, 2, "k-q"}, {2, 3, "h-i"}},
                   {{1, "f"}},
                   "L1: 1 moved to L2, next k"},
                  {"a level that is drained is not the reason to write the one below anew",
                   1,
                   {{1, 1, "k-l"}, {2, 2, "a-c"}, {2, 3, "d-j"}},
                   {},
                   "L1: 1 moved to L2, next round"},
                  {"but not what lies across the pointer of the lower level",
                   1,
                   {{1, 1, "f-i"}, {2, 3, "a-b"}},
                   {{1, "f"}, {2, "g"}},
                   "L1: 1 -> L2, next round, cut g"},
              });
}

// The upper files are one MiB each, and so are up to two wanted of them.
TEST(IsozonePickerTest, AWindowEndsWhereNoLowerFileReachesAcross) {
  const auto picked = [](const std::vector<std::string>& lower) {
    LsmLimits limits = OnlyLevel(1);
    limits.capacity_bytes[1] = 2 * IsozonePicker::kUpperShare * kMiB;
    LsmTree tree(limits);
    for (uint32_t i = 10; i < 50; ++i) AddFiles(tree, {{1, i, fmt::format("{}0-{}5", i, i), kMiB}});
    for (uint32_t i = 0; i < lower.size(); ++i) AddFiles(tree, {{2, 100 + i, lower[i]}});
    return IsozonePicker().Pick(tree)->inputs[0].files.size();
  };
  EXPECT_EQ(2U, picked({"100-115"}));  // behind both
  EXPECT_EQ(1U, picked({"112-125"})) << "the second window begins with all of the lower file";
  EXPECT_EQ(3U, picked({"104-112", "114-122"}));
  EXPECT_EQ(4U, picked({"104-112", "114-122", "124-132"}));
  EXPECT_EQ(2U, picked({"104-112", "114-122", "124-132", "134-142"})) << "more than kStretch times as much";
}

TEST(IsozonePickerTest, WindowsAreCompactedBesideEachOther) {
  LsmLimits limits = OnlyLevel(1);
  LsmTree tree(limits);
  for (uint32_t i = 10; i < 18; ++i) {
    AddFiles(tree, {{1, i, fmt::format("{}0-{}5", i, i)}, {2, 100 + i, fmt::format("{}0-{}7", i, i)}});
  }
  int running = 0;
  while (const auto pick = IsozonePicker().Pick(tree)) {
    ASSERT_TRUE(tree.Begin(*pick).ok());
    ++running;
  }
  EXPECT_EQ(running, 8);
}

TEST(IsozonePickerTest, TheShareOfALevelAndTheBytesOfASweepBoundWhatIsTaken) {
  LsmLimits limits = OnlyLevel(1);
  const auto picked = [&](uint64_t capacity, uint64_t sweep) {
    limits.capacity_bytes[1] = capacity;
    limits.sweep_bytes = sweep;
    LsmTree tree(limits);
    for (uint32_t i = 10; i < 80; ++i) AddFiles(tree, {{1, i, fmt::format("{}0-{}5", i, i), kMiB}});
    return IsozonePicker().Pick(tree)->inputs[0].files.size();
  };
  constexpr uint64_t kShare = IsozonePicker::kUpperShare;
  EXPECT_EQ(1U, picked(10 * kShare, 3 * kMiB));  // one file at least
  EXPECT_EQ(2U, picked(2 * kShare * kMiB, 3 * kMiB));
  EXPECT_EQ(3U, picked(4 * kShare * kMiB, 3 * kMiB));
}

}  // namespace
}  // namespace isozone
