#include "rocksdb/adapter/lsm_level.h"

#include <memory>

#include <gtest/gtest.h>

#include "rocksdb/adapter/running_job.h"
#include "store/zone/data_class.h"

namespace isozone {
namespace {

constexpr int8_t kNoLevel = DataClass::kNoLevel;

TEST(TableLevelTest, WhatTheJobWasToldCountsMost) {
  EXPECT_EQ(TableLevel(5, IoClass::kFlush, Lifetime::kMedium), 5);
  EXPECT_EQ(TableLevel(0, IoClass::kCompactionWrite, Lifetime::kExtreme), 0);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kFlush, Lifetime::kExtreme), 0);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kCompactionWrite, Lifetime::kMedium), 1);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kCompactionWrite, Lifetime::kLong), 2);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kCompactionWrite, Lifetime::kExtreme), 3);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kCompactionWrite, Lifetime::kNotSet), kNoLevel);
  EXPECT_EQ(TableLevel(kNoLevel, IoClass::kOther, Lifetime::kShort), kNoLevel);
}

rocksdb::SubcompactionJobInfo Subcompaction(int output_level) {
  rocksdb::SubcompactionJobInfo info;
  info.output_level = output_level;
  return info;
}

TEST(LevelListenerTest, LevelsEndWithTheirJobs) {
  LevelListener listener;
  EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);
  listener.OnSubcompactionBegin(Subcompaction(4));
  EXPECT_EQ(RunningJob::OfThread().level, 4);
  listener.OnSubcompactionCompleted(Subcompaction(4));
  EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);

  listener.OnSubcompactionBegin(Subcompaction(2));
  listener.OnCompactionCompleted(nullptr, rocksdb::CompactionJobInfo());
  EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);

  rocksdb::TableFileCreationInfo table;
  table.reason = rocksdb::TableFileCreationReason::kFlush;
  listener.OnTableFileCreationStarted(table);
  EXPECT_EQ(RunningJob::OfThread().level, 0);
  listener.OnTableFileCreated(table);
  EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);
  table.status.PermitUncheckedError();
}

TEST(LevelListenerTest, TablesOfACompactionDoNotEndItsLevel) {
  LevelListener listener;
  rocksdb::TableFileCreationInfo table;
  table.reason = rocksdb::TableFileCreationReason::kCompaction;
  listener.OnSubcompactionBegin(Subcompaction(3));
  listener.OnTableFileCreationStarted(table);
  EXPECT_EQ(RunningJob::OfThread().level, 3);
  listener.OnTableFileCreated(table);
  EXPECT_EQ(RunningJob::OfThread().level, 3);
  listener.OnSubcompactionCompleted(Subcompaction(3));
  table.status.PermitUncheckedError();
}

TEST(LevelPartitionerTest, NeverPartitionsAndLeavesNothingBehind) {
  const rocksdb::Slice key("key");
  auto first = std::make_unique<LevelPartitioner>(2);
  auto second = std::make_unique<LevelPartitioner>(5);
  EXPECT_EQ(first->ShouldPartition({key, key, 1 << 30}), rocksdb::kNotRequired);
  EXPECT_EQ(RunningJob::OfThread().level, 2);
  EXPECT_TRUE(first->CanDoTrivialMove(key, key));
  second.reset();
  EXPECT_EQ(RunningJob::OfThread().level, 2);
  first.reset();
  EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);
}

}  // namespace
}  // namespace isozone
