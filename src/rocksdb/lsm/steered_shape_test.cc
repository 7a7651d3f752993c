#include "rocksdb/lsm/steered_shape.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 60;

class SteeredShapeTest : public testing::Test {
 protected:
  SteeredShapeTest() {
    shape_.levels = 5;
    shape_.table_bytes = 16 * kMiB;
  }
  // `mib`: what each level holds.
  LsmLimits Limits(std::vector<uint64_t> mib, bool dynamic, uint64_t free_bytes) {
    for (uint64_t& one : mib) one *= kMiB;
    shape_.dynamic_levels = dynamic;
    return shape_.LimitsFor(mib, free_bytes);
  }

  SteeredShape shape_;
};

TEST_F(SteeredShapeTest, LevelsAreSizedFromEitherEnd) {
  const LsmLimits down = Limits({0, 0, 0, 0, 7000}, false, kPlenty);
  EXPECT_EQ(down.base_level, 1);
  EXPECT_EQ(down.capacity_bytes[2], 2560 * kMiB);
  const LsmLimits up = Limits({0, 0, 0, 0, 7000}, true, kPlenty);
  EXPECT_EQ(up.base_level, 2);
  EXPECT_EQ(up.capacity_bytes[4], 7000 * kMiB);
  EXPECT_LT(up.capacity_bytes[3], 7000 * kMiB / 5);
}

// For level 0 and the base level 64 + 16 MiB are needed where they are empty, and 11 x 16 MiB for a table.
TEST_F(SteeredShapeTest, LevelsGiveBackWhatCompactionsNeed) {
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 256 * kMiB).capacity_bytes[3], 700 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 156 * kMiB).capacity_bytes[3], 600 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 156 * kMiB).capacity_bytes[4], 7000 * kMiB);
}

TEST_F(SteeredShapeTest, ButKeepTheRootOfTheNextLevel) {
  EXPECT_EQ(Limits({0, 0, 0, 400, 6400}, true, 0).capacity_bytes[3], 320 * kMiB);  // 20 tables over 400
}

TEST_F(SteeredShapeTest, LittleSpaceMakesSweepsSmaller) {
  EXPECT_EQ(Limits({0, 0, 0, 0, 7000}, true, kPlenty).sweep_bytes, 64 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 0, 7000}, true, 440 * kMiB).sweep_bytes, 10 * kMiB);
}

TEST_F(SteeredShapeTest, AFactorBetweenWholeNumbersCounts) {
  shape_.level_factor = 2.5;
  EXPECT_EQ(Limits({0, 0, 0, 0, 0}, false, kPlenty).capacity_bytes[2], 640 * kMiB);
}

TEST_F(SteeredShapeTest, OneCompactionHasAllSpaceAndOthersWhatItLeaves) {
  EXPECT_FALSE(SteeredShape::MayCompact({.free_bytes = kPlenty}));
  EXPECT_TRUE(SteeredShape::MayCompact({.free_bytes = 1, .next_bytes = 100}));
  EXPECT_TRUE(SteeredShape::MayCompact({.free_bytes = 300, .running_bytes = 200, .next_bytes = 100}));
  EXPECT_FALSE(SteeredShape::MayCompact({.free_bytes = 299, .running_bytes = 200, .next_bytes = 100}));
}

TEST_F(SteeredShapeTest, ACompactionBesideAFlushNeedsRoomForBoth) {
  EXPECT_TRUE(SteeredShape::MayCompact({.free_bytes = 150, .next_bytes = 100, .flushing_bytes = 50}));
  EXPECT_FALSE(SteeredShape::MayCompact({.free_bytes = 149, .next_bytes = 100, .flushing_bytes = 50}));
  EXPECT_FALSE(
      SteeredShape::MayCompact({.free_bytes = 349, .running_bytes = 200, .next_bytes = 100, .flushing_bytes = 50}));
}

TEST_F(SteeredShapeTest, AFlushLeavesRoomForCompactions) {
  const LsmTree tree(shape_.EmptyLimits());
  const uint64_t memtable = shape_.memtable_bytes;
  EXPECT_TRUE(shape_.MayFlush(tree, {.free_bytes = 0})) << "nothing that is to be waited for";
  const auto may = [&](uint64_t free_bytes, uint64_t next_bytes) {
    return shape_.MayFlush(tree, {.free_bytes = free_bytes, .next_bytes = next_bytes, .flush_bytes = 2 * memtable});
  };
  // This flush, and one beside the compaction of level 0, whose base is empty.
  EXPECT_TRUE(may(5 * memtable, memtable));
  EXPECT_FALSE(may(5 * memtable - 1, 1)) << "level 0 is next";
  EXPECT_FALSE(may(5 * memtable, memtable + 1));
}

TEST_F(SteeredShapeTest, WhatRunsNeedsRoomOnlyForWhatItHasYetToWrite) {
  const LsmTree tree(shape_.EmptyLimits());
  const uint64_t memtable = shape_.memtable_bytes;
  const auto may = [&](uint64_t free_bytes, uint64_t left, uint64_t written) {
    return shape_.MayFlush(tree, {.free_bytes = free_bytes,
                                  .running_bytes = left,
                                  .running_written_bytes = written,
                                  .flush_bytes = 2 * memtable});
  };
  EXPECT_TRUE(may(5 * memtable, 3 * memtable, 0));
  EXPECT_FALSE(may(5 * memtable, 3 * memtable + 1, 0));
  EXPECT_FALSE(may(4 * memtable, 0, memtable - 1)) << "what it gives back is too little for level 0";
  EXPECT_TRUE(may(4 * memtable, 0, memtable));
}

TEST_F(SteeredShapeTest, AFlushGoesFirstWhereItGivesBackWhatTheNextCompactionLacks) {
  CompactionRoom room = {.free_bytes = 400, .next_bytes = 350, .flush_bytes = 50, .written_bytes_since_asked = 51};
  EXPECT_FALSE(room.flush_is_overdue());
  room.next_bytes = 351;
  EXPECT_TRUE(room.flush_is_overdue());
  room.written_bytes_since_asked = 50;
  EXPECT_FALSE(room.flush_is_overdue()) << "it gives back no more than it takes";
  room.written_bytes_since_asked = 51;
  room.running_bytes = 1;
  EXPECT_FALSE(room.flush_is_overdue()) << "what runs may give it back";
}

TEST_F(SteeredShapeTest, OnlyWhatHasEndedMakesAFlushOverdue) {
  const auto overdue = [](uint64_t running) {
    return CompactionRoom{.free_bytes = 400, .running_written_bytes = running, .written_bytes_since_asked = 300}
        .flush_is_overdue();
  };
  EXPECT_TRUE(overdue(99));
  EXPECT_FALSE(overdue(100));
}

TEST_F(SteeredShapeTest, NoCompactionBeginsBesideAFlushThatHasWaitedForTooLong) {
  const auto may = [](uint64_t written) {
    return SteeredShape::MayCompact({.free_bytes = 400, .next_bytes = 100, .written_bytes_since_asked = written});
  };
  EXPECT_TRUE(may(200));
  EXPECT_FALSE(may(201));
}

// What a compaction that runs writes makes the free space smaller, and so the flush overdue. It must not take what the
// compaction still needs.
TEST_F(SteeredShapeTest, AFlushThatHasWaitedForTooLongLeavesRoomForWhatRuns) {
  const LsmTree tree(shape_.EmptyLimits());
  const uint64_t free_bytes = shape_.memtable_bytes + 200;
  const uint64_t overdue = free_bytes / 2 + 1;
  const auto may = [&](std::optional<uint64_t> running, uint64_t written) {
    return shape_.MayFlush(tree, {.free_bytes = free_bytes,
                                  .running_bytes = running,
                                  .next_bytes = 100,
                                  .flush_bytes = 2 * shape_.memtable_bytes,
                                  .written_bytes_since_asked = written});
  };
  EXPECT_FALSE(may(200, 0)) << "the next compaction lacks room";
  EXPECT_TRUE(may(200, overdue));
  EXPECT_FALSE(may(201, overdue));
  EXPECT_TRUE(shape_.MayFlush(tree, {.free_bytes = 0, .next_bytes = 100, .written_bytes_since_asked = 1}))
      << "none runs any more";
}

TEST_F(SteeredShapeTest, DebtThatWouldFillTheDeviceIsNotAllowed) {
  const auto limits = [](uint64_t free_bytes) {
    const CompactionDebtLimits result = SteeredShape::LimitsOfSpace(free_bytes);
    return std::pair(result.soft_bytes, result.hard_bytes);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(limits(300), Pair(550, 1100));
  EXPECT_EQ(limits(0), Pair(1, 2)) << "0 would be no limit";
  EXPECT_GT(limits(UINT64_MAX).second, kPlenty);
}

TEST_F(SteeredShapeTest, AFlushWaitsForDebt) {
  shape_.debt = {.soft_bytes = 1, .hard_bytes = 100};
  LsmTree tree(shape_.EmptyLimits());
  for (uint64_t number = 1; number <= shape_.level0_files; ++number) {
    LsmFile file;
    file.number = number;
    file.smallest = "a";
    file.largest = "b";
    file.bytes = kMiB;
    ASSERT_TRUE(tree.AddFile(0, file).ok());
  }
  EXPECT_FALSE(shape_.MayFlush(tree, {.free_bytes = kPlenty, .next_bytes = 4 * kMiB}));
  EXPECT_TRUE(shape_.MayFlush(tree, {.free_bytes = kPlenty})) << "nothing can be compacted";
}

}  // namespace
}  // namespace isozone
