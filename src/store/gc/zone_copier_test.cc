#include "store/gc/zone_copier.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/gc/collector_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using testing::ElementsAre;

class ZoneCopierTest : public CollectorTest {};

// --- What is copied ---

TEST_F(ZoneCopierTest, WhatIsValidArrivesByteForByte) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 8 * kBlock, 3 * kBlock}, {1, kCapacity - kBlock, kBlock}});
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.bytes_copied, 5 * kBlock);
  EXPECT_EQ(done.bytes_read, 5 * kBlock);
  EXPECT_EQ(done.bytes_reclaimed, kCapacity - 5 * kBlock);
  EXPECT_EQ(done.bytes_dropped + done.read_errors + done.mismatches + done.failed_zones + done.skipped_zones, 0u);
  EXPECT_EQ(collector->Stats().copies.bytes_copied, 5 * kBlock);
  EXPECT_EQ(collector->Stats().rounds, 1u);
  EXPECT_THAT(store_.gained, ElementsAre(true));
}

TEST_F(ZoneCopierTest, RunsNeedNotBeAligned) {
  store_.Fill(0, {{1, 1, 10},                       // within a block
                  {2, kBlock - 5, 10},              // across two blocks
                  {3, 2 * kBlock + 100, kBlock},    // a block long, but aligned to none
                  {4, 5 * kBlock, 3 * kBlock - 1},  // whole blocks without the last byte
                  {5, 8 * kBlock - 1, 1},           // that last byte, of another file
                  {6, kCapacity - 3, 3}});
  RunAll(*Make());
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
}

TEST_F(ZoneCopierTest, RunsGoAcrossSegments) {
  store_.Fill(0, {{1, kSegment - 3 * kBlock, 6 * kBlock}, {2, 2 * kSegment - 77, 100}});
  store_.Fill(1, {{3, kBlock, 2 * kSegment}});  // it has a whole segment in the middle
  RunAll(*Make());
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
}

TEST_F(ZoneCopierTest, ClassesStayApart) {
  store_.Fill(0, {{1, 0, kBlock}}, {Lifetime::kMedium, 2});
  store_.Fill(1, {{2, 0, kBlock}}, {Lifetime::kLong, 3});
  store_.Fill(2, {{3, 0, kBlock}}, {Lifetime::kMedium, 2});
  RunAll(*Make(Named("zenfs")));
  store_.ExpectIntact();
  EXPECT_EQ(store_.ZonesOf(1), store_.ZonesOf(3));
  EXPECT_NE(store_.ZonesOf(1), store_.ZonesOf(2));
  EXPECT_EQ(store_.ClassOf(*store_.ZonesOf(1).begin()), DataClass(Lifetime::kMedium, 2));
  EXPECT_EQ(store_.ClassOf(*store_.ZonesOf(2).begin()), DataClass(Lifetime::kLong, 3));
}

TEST_F(ZoneCopierTest, LsmZgcReadsSegmentsAndPartsHotFromCold) {
  // More than 0.4 of the first segment is valid, so it is cold and read whole. Two blocks of the second segment are
  // valid, so it is hot and read as runs.
  const uint64_t cold = kSegment / 2;
  store_.Fill(0, {{1, 0, cold}, {2, kSegment, kBlock}, {3, kSegment + 100 * kBlock, kBlock}});
  // Every segment counts as cold in a zone whose data has survived once.
  store_.Fill(1, {{4, 0, kBlock}}, {Lifetime::kNotSet, DataClass::kNoLevel, ZoneHeat::kC1H});
  const CopyStats done = RunAll(*Make(Named("lsm-zgc")));
  store_.ExpectIntact();
  const auto heat = [&](uint64_t file) { return store_.ClassOf(*store_.ZonesOf(file).begin()).heat; };
  EXPECT_EQ(heat(1), ZoneHeat::kC1C);
  EXPECT_EQ(heat(2), ZoneHeat::kC1H);
  EXPECT_EQ(heat(3), ZoneHeat::kC1H);
  EXPECT_EQ(heat(4), ZoneHeat::kC2);
  EXPECT_EQ(done.bytes_read, cold + 3 * kBlock);
}

TEST_F(ZoneCopierTest, LsmZgcReadsInvalidBlocksWhereThatPays) {
  std::vector<Part> runs;  // every second block of a segment
  for (uint64_t at = 0; at < kSegment; at += 2 * kBlock) runs.push_back({at, at, kBlock});
  store_.Fill(0, runs);
  const CopyStats done = RunAll(*Make(Named("lsm-zgc")));
  store_.ExpectIntact();
  EXPECT_EQ(done.bytes_read, kSegment);
  EXPECT_EQ(done.bytes_copied, kSegment / 2);
}

TEST_F(ZoneCopierTest, AnyLayoutUnderAnySchemeKeepsEveryByte) {
  const uint64_t seed = TestSeed(20260101);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  uint64_t next_file = 0;
  for (const char* scheme : {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    SCOPED_TRACE(scheme);
    std::vector<uint64_t> files;
    for (int filled = 0; filled < 5;) {  // each zone has a class of its own, with survivors of two heats
      const auto zone = static_cast<uint32_t>(random.Below(kZones));
      if (!store_.IsEmpty(zone)) continue;
      ++filled;
      std::vector<Part> runs;
      for (uint64_t at = 0; at < kCapacity;) {
        at += random.Chance(0.3) ? 0 : random.Between(1, kSegment / 2);
        const uint64_t length = random.Between(1, random.Chance(0.5) ? kBlock : kSegment / 2);
        if (at + length > kCapacity) break;
        if (random.Chance(0.5)) files.push_back(next_file++);
        if (files.empty()) continue;
        runs.push_back({files.back(), at, length});
        at += length;
      }
      files.push_back(next_file++);
      store_.Fill(zone, runs,
                  {static_cast<Lifetime>(random.Below(kLifetimeCount)), static_cast<int8_t>(random.Below(3))});
    }
    GcOptions options = Named(scheme);
    options.memory = random.Chance(0.5) ? 8 * kMiB : 64 * kMiB;
    RunAll(*Make(options));
    ASSERT_NO_FATAL_FAILURE(store_.ExpectIntact());
    for (const uint64_t file : files) store_.Delete(file);
  }
}

TEST_F(ZoneCopierTest, WhatWasRemovedMeanwhileIsDropped) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, kBlock}});
  store_.before_write = [&] { store_.Delete(1); };
  const CopyStats done = RunAll(*Make());
  EXPECT_EQ(done.bytes_copied, kBlock);
  EXPECT_EQ(done.bytes_dropped, kBlock);
  EXPECT_EQ(done.failed_zones, 0u);
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
}

// --- What is not ---

TEST_F(ZoneCopierTest, WhatCannotBeReadStaysAndIsTriedAgainMuchLater) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, kBlock}});
  store_.Fill(1, {{3, 0, kBlock}});
  device_->FailNext(DeviceOp::kRead, ZoneId(0), DeviceStatus::kUnrecoveredReadError);
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  EXPECT_EQ(done.read_errors, 1u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.bytes_copied, kBlock);
  EXPECT_FALSE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
  store_.ExpectIntact();
  // There is no other candidate.
  for (uint64_t round = 1; round < CollectorState::kAvoidRounds; ++round) {
    store_.tried.clear();
    RunAll(*collector);
    ASSERT_FALSE(std::count(store_.tried.begin(), store_.tried.end(), 0)) << round;
    EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty());
  }
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(ZoneCopierTest, ACopyThatDoesNotReadBackIsGivenUp) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, 2 * kBlock}});
  store_.corrupt_writes = 1;
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  EXPECT_EQ(done.mismatches, 2u);
  EXPECT_EQ(store_.given_up, 3 * kBlock);
  EXPECT_EQ(done.bytes_copied, 0u);
  EXPECT_EQ(done.zones, 0u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_EQ(done.bytes_reclaimed, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
  EXPECT_THAT(store_.gained, ElementsAre(false));
  EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty()) << "not at once again";
}

TEST_F(ZoneCopierTest, OnlyTheVictimOfABadCopyIsLeft) {
  store_.Fill(0, {{1, 0, kBlock}}, {Lifetime::kShort});
  store_.Fill(1, {{2, 0, kBlock}}, {Lifetime::kLong});
  store_.corrupt_writes = 1;
  const CopyStats done = RunAll(*Make());
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_NE(store_.IsEmpty(0), store_.IsEmpty(1));
  store_.ExpectIntact();
}

TEST_F(ZoneCopierTest, WithoutVerifyingABadCopyIsNotFound) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.corrupt_writes = 1;
  GcOptions options;
  options.verify = false;
  EXPECT_EQ(RunAll(*Make(options)).mismatches, 0u);
  EXPECT_NE(store_.ContentOf(1), store_.WantedOf(1));
}

TEST_F(ZoneCopierTest, WithoutSpaceAVictimStaysAsItWas) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 2 * kSegment, kBlock}});  // it has two segments
  store_.writes_before_no_space = 1;
  GcOptions options;
  options.memory = 8 * kMiB;  // one segment at a time
  const auto collector = Make(options);
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kNoSpace));
  EXPECT_EQ(collector->Stats().copies.bytes_copied, 0u);
  EXPECT_EQ(store_.given_up, kBlock);
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(0u));
  EXPECT_EQ(store_.Look().empty_zones, kZones - 1) << "the zone of the copy is reset";
  store_.ExpectIntact();
  EXPECT_THAT(store_.gained, ElementsAre(false));
  store_.writes_before_no_space = -1;
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(ZoneCopierTest, VictimsWhoseMovesMetadataHasNoRoomForAreNotTakenAgainAtOnce) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  store_.commit_error = Status::NoSpace("metadata is full");
  const auto collector = Make();
  EXPECT_TRUE(collector->Run(100, {}).ok());
  EXPECT_EQ(collector->Stats().copies.failed_zones, 2u);
  EXPECT_EQ(collector->Stats().copies.bytes_copied, 0u);
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(0u));
  EXPECT_THAT(store_.ZonesOf(2), ElementsAre(1u));
  store_.ExpectIntact();
}

TEST_F(ZoneCopierTest, WhatWasWrittenBeforeAnErrorIsVerifiedToo) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 2 * kSegment, kBlock}});
  store_.corrupt_writes = 1;
  store_.writes_before_no_space = 1;
  const auto collector = Make();
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kNoSpace));
  EXPECT_EQ(collector->Stats().copies.mismatches, 1u);
  store_.ExpectIntact();
}

TEST_F(ZoneCopierTest, ScatteredCrumbsAreNotWorthIt) {
  std::vector<Part> runs;  // one byte of every block
  for (uint64_t at = 0; at < kCapacity; at += kBlock) runs.push_back({1, at + 5, 1});
  store_.Fill(0, runs);
  const auto collector = Make();
  EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty());
  EXPECT_EQ(RunAll(*collector).bytes_read, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
}

TEST_F(ZoneCopierTest, FilesMayLackTheMetadataToBeMoved) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.commit_error = Status::ReadOnly("journal is broken");
  const auto collector = Make();
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kReadOnly));
  store_.ExpectIntact();
  EXPECT_FALSE(store_.IsEmpty(0));
}

}  // namespace
}  // namespace isozone
