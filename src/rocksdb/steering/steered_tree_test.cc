#include "rocksdb/steering/steered_tree.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kTableBytes = 1000;
constexpr uint64_t kPlenty = uint64_t{1} << 40;

struct Table {
  int level = 0;
  uint64_t number = 0;
  std::string smallest;
  std::string largest;
};

// What RocksDB says of a column family with 4 levels; of level 0 the newest table comes first.
rocksdb::ColumnFamilyMetaData MetaData(const std::vector<Table>& tables) {
  rocksdb::ColumnFamilyMetaData metadata;
  for (int level = 0; level < 4; ++level) {
    std::vector<rocksdb::SstFileMetaData> files;
    for (const Table& table : tables) {
      if (table.level != level) continue;
      files.emplace_back();
      files.back().file_number = table.number;
      files.back().name = TableName(table.number);
      files.back().size = kTableBytes;
      files.back().smallestkey = table.smallest;
      files.back().largestkey = table.largest;
    }
    metadata.levels.emplace_back(level, files.size() * kTableBytes, std::move(files));
  }
  return metadata;
}

std::string Path(uint64_t number) { return "/db" + TableName(number); }

class SteeredTreeTest : public testing::Test {
 protected:
  static SteeredShape Shape() {
    SteeredShape shape;
    shape.levels = 4;
    shape.level_base_bytes = 10 * kTableBytes;
    shape.level0_files = 2;
    shape.table_bytes = kTableBytes;
    shape.memtable_bytes = kTableBytes;
    shape.dynamic_levels = false;
    return shape;
  }
  void Update(const std::vector<Table>& tables, uint64_t free_bytes = kPlenty) {
    tree_.Update(Shape(), MetaData(tables), free_bytes);
  }
  SteeredTree::Compaction Begun(uint64_t free_bytes = kPlenty) {
    auto begun = tree_.Begin(free_bytes, 0, 0);
    EXPECT_TRUE(begun.ok() && begun->has_value());
    return begun.ok() && begun->has_value() ? **begun : SteeredTree::Compaction();
  }
  bool Begins(uint64_t free_bytes, size_t flushes = 0, uint64_t written_bytes = 0) {
    const auto begun = tree_.Begin(free_bytes, flushes, written_bytes);
    return begun.ok() && begun->has_value();
  }

  SteeredTree tree_{std::move(*MakeCompactionPicker("leveled")), BytewiseOrder(), Shape()};
};

const Table kOld{0, 1, "a", "m"};
const Table kNew{0, 2, "c", "z"};

TEST_F(SteeredTreeTest, CompactsWhatTheMetadataSays) {
  Update({kOld});
  EXPECT_FALSE(tree_.has_next());
  Update({kNew, kOld});
  EXPECT_TRUE(tree_.has_next());
  const SteeredTree::Compaction begun = Begun();
  EXPECT_EQ(begun.pick.inputs, (std::vector<CompactionPick::Input>{{0, {1, 2}}}));
  EXPECT_EQ(begun.table_bytes, kTableBytes);
  EXPECT_TRUE(tree_.compacts());
  EXPECT_FALSE(tree_.has_next());
}

TEST_F(SteeredTreeTest, FindsWhatIsGone) {
  Update({kNew, kOld});
  Update({kNew});
  EXPECT_FALSE(tree_.has_next());
}

TEST_F(SteeredTreeTest, CountsWhatACompactionHasDone) {
  Update({kNew, kOld, {1, 3, "b", "d"}});
  const SteeredTree::Compaction begun = Begun();
  const Table output{1, 4, "a", "z"};
  // The metadata may be ahead of the end of the compaction, and of others that came meanwhile.
  Update({output});
  EXPECT_TRUE(tree_.compacts());
  const ColumnFamilyDriverStats stats = tree_.Finish(begun, MetaData({output, {1, 5, "zz", "zzz"}}), {Path(4)});
  EXPECT_EQ(stats.compactions, 1U);
  EXPECT_EQ(stats.bytes_read, 3 * kTableBytes);
  EXPECT_EQ(stats.bytes_written, kTableBytes);
  EXPECT_EQ(stats.tables_moved, 0U);
  EXPECT_FALSE(tree_.compacts());
}

TEST_F(SteeredTreeTest, TellsATableThatWasMovedByItsNumber) {
  Update({kNew, kOld});
  const SteeredTree::Compaction begun = Begun();
  const ColumnFamilyDriverStats stats = tree_.Finish(begun, MetaData({{1, 2, "c", "z"}}), {Path(2)});
  EXPECT_EQ(stats.tables_moved, 1U);
  EXPECT_EQ(stats.bytes_read, 0U);
  EXPECT_EQ(stats.bytes_written, 0U);
  EXPECT_FALSE(tree_.compacts());
}

TEST_F(SteeredTreeTest, WhatWasAbandonedIsPickedAgain) {
  Update({kNew, kOld});
  const SteeredTree::Compaction begun = Begun();
  tree_.Abandon(begun);
  EXPECT_FALSE(tree_.compacts());
  EXPECT_EQ(Begun().pick, begun.pick);
}

TEST_F(SteeredTreeTest, BesideAFlushACompactionBeginsOnlyIfBothFindRoom) {
  Update({kNew, kOld});
  EXPECT_FALSE(Begins(3 * kTableBytes - 1, /*flushes=*/1));
  EXPECT_FALSE(Begins(kPlenty, /*flushes=*/0, /*written_bytes=*/kPlenty)) << "a flush is overdue";
  EXPECT_TRUE(Begins(3 * kTableBytes, /*flushes=*/1));
}

TEST_F(SteeredTreeTest, AFlushLeavesRoomForWhatRuns) {
  EXPECT_TRUE(tree_.MayFlush(0, 0)) << "there is nothing to compact";
  Update({kNew, kOld});
  EXPECT_FALSE(tree_.MayFlush(2 * kTableBytes, 0)) << "the next compaction has no room beside it";
  const SteeredTree::Compaction begun = Begun();
  // Two flushes take two tables each, and the next compaction of level 0 writes one of them.
  EXPECT_FALSE(tree_.MayFlush(5 * kTableBytes - 1, 0));
  EXPECT_TRUE(tree_.MayFlush(5 * kTableBytes, 0));
  *begun.written_bytes = kTableBytes;
  EXPECT_TRUE(tree_.MayFlush(4 * kTableBytes, 0));
}

TEST_F(SteeredTreeTest, CountsNoMoreAsWrittenThanIsRead) {
  Update({kNew, kOld});
  const SteeredTree::Compaction begun = Begun();
  *begun.written_bytes = kPlenty;
  EXPECT_EQ(tree_.running_written_bytes(), 2 * kTableBytes);
  tree_.Abandon(begun);
  EXPECT_EQ(tree_.running_written_bytes(), 0U);
}

}  // namespace
}  // namespace isozone
