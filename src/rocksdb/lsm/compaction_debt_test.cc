#include "rocksdb/lsm/compaction_debt.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

constexpr CompactionDebtLimits kLimits = {.soft_bytes = 100 * kMiB, .hard_bytes = 300 * kMiB};

TEST(CompactionDebtTest, ATreeInShapeHasNone) {
  LsmTree tree(LsmLimits::Exponential(4, 8 * kMiB, 10));
  AddFiles(tree, {{0, 1, "a-z"}, {1, 2, "a-k"}, {1, 3, "m-z"}, {3, 4, "a-z", kTiB}});
  EXPECT_EQ(CompactionDebt(tree), 0U);
}

TEST(CompactionDebtTest, WhatIsAboveTheSizeOfALevelIsWrittenWithItsShareOfTheNextOne) {
  LsmTree tree(LsmLimits::Exponential(4, 8 * kMiB, 10));
  AddFiles(tree, {{1, 1, "a-k", 8 * kMiB}, {1, 2, "m-z", 8 * kMiB}, {2, 3, "a-z", 40 * kMiB}});
  EXPECT_EQ(CompactionDebt(tree), (8 + 20) * kMiB);
}

TEST(CompactionDebtTest, WhatGoesDownAddsToTheLevelBelow) {
  LsmTree tree(LsmLimits::Exponential(4, 8 * kMiB, 2));
  AddFiles(tree, {{1, 1, "a-z", 16 * kMiB}, {2, 2, "a-z", 16 * kMiB}, {3, 3, "a-z", 24 * kMiB}});
  // 8 MiB of level 1 with 8 of level 2; then 8 of 24 there, with 8 of level 3.
  EXPECT_EQ(CompactionDebt(tree), (16 + 16) * kMiB);
}

TEST(CompactionDebtTest, Level0GoesDownWholeWithTheLevelBelow) {
  LsmLimits limits = LsmLimits::Exponential(4, 100 * kMiB, 10);
  limits.level0_files = 2;
  LsmTree tree(limits);
  AddFiles(tree, {{0, 1, "a-z", 3 * kMiB}, {1, 2, "a-z", 50 * kMiB}});
  EXPECT_EQ(CompactionDebt(tree), 0U);
  AddFiles(tree, {{0, 3, "a-z", 4 * kMiB}});
  EXPECT_EQ(CompactionDebt(tree), (7 + 50) * kMiB);
}

TEST(CompactionDebtTest, AFlushWaitsForMoreTheMoreDebtThereIs) {
  EXPECT_EQ(BytesBeforeFlush(100 * kMiB, kLimits, kMiB), 0U);
  EXPECT_EQ(BytesBeforeFlush(200 * kMiB, kLimits, kMiB), kBytesPerFlushedByte * kMiB / 2);
  EXPECT_EQ(BytesBeforeFlush(300 * kMiB, kLimits, kMiB), std::nullopt);
}

TEST(CompactionDebtTest, ALimitThatIsNotSetIsNone) {
  EXPECT_EQ(BytesBeforeFlush(kTiB, {}, kMiB), 0U);
  EXPECT_EQ(BytesBeforeFlush(kTiB, {.hard_bytes = kGiB}, kMiB), std::nullopt);
  EXPECT_EQ(BytesBeforeFlush(kTiB, {.soft_bytes = kGiB}, kMiB), kBytesPerFlushedByte * kMiB);
}

}  // namespace
}  // namespace isozone
