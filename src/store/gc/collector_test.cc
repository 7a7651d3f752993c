#include "store/gc/collector.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/gc/collector_test_util.h"
#include "testing/assert_ok.h"
#include "testing/manual_clock.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- How many, and how far ---

TEST_F(CollectorTest, VictimsAreReadTogetherWhereTheirSurvivorsHaveRoom) {
  for (uint32_t zone = 0; zone < 4; ++zone) store_.Fill(zone, {{zone, 0, kSegment}});
  RunAll(*Make());
  EXPECT_EQ(store_.most_held, 2u);  // 16 MiB: two windows of two segments and their copies
  store_.ExpectIntact();
}

TEST_F(CollectorTest, OneVictimPaysForTheNextWhereSpaceIsShort) {
  // There is one empty zone, and each victim gains less than the next one has survivors.
  for (uint32_t zone = 0; zone + 1 < kZones; ++zone) store_.Fill(zone, {{zone, 0, 2 * kSegment}});
  store_.most_empty = 0;  // the collector keeps the empty zone as its reserve
  GcOptions options;
  options.memory = 256 * kMiB;
  const CopyStats done = RunAll(*Make(options));
  EXPECT_EQ(store_.most_held, 1u);
  EXPECT_EQ(done.zones, kZones - 1);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, StopsBetweenWindows) {
  std::vector<Part> runs;
  for (uint64_t file = 0; file < 3; ++file) runs.push_back({file, file * kSegment, kBlock});
  store_.Fill(0, runs);
  GcOptions options;
  options.memory = 8 * kMiB;  // one segment at a time
  const auto collector = Make(options);
  uint64_t calls = 0;
  const auto done = collector->Run(100, [&](const CopyStats& so_far, uint64_t bytes_to_copy) {
    EXPECT_EQ(so_far.bytes_read, kBlock);
    EXPECT_EQ(bytes_to_copy, 3 * kBlock);
    ++calls;
    return false;
  });
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(done->bytes_read, 2 * kBlock) << "the window that was read ahead, and no more";
  EXPECT_EQ(done->bytes_copied, 0u) << "all of a victim, or nothing";
  EXPECT_EQ(store_.Look().empty_zones, kZones - 1) << "the zone of the copies is reset";
  EXPECT_EQ(done->zones, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
  EXPECT_THAT(store_.gained, ElementsAre(true)) << "who waits for space has not heard the last of it";
  store_.ExpectIntact();
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, CollectsUntilSoMuchIsFree) {
  for (uint32_t zone = 0; zone < 12; ++zone) store_.Fill(zone, {{zone, 0, kBlock}});
  const auto collector = Make();
  EXPECT_EQ(collector->Run(20, {})->bytes_read, 0u) << "four of 16 are free";
  EXPECT_EQ(collector->Stats().rounds, 0u);
  const auto done = collector->Run(40, {});
  ASSERT_TRUE(done.ok());
  EXPECT_GE(store_.Look().free_percent(), 40);
  EXPECT_LT(done->zones, 12u);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, TellsWhoWaitsThatNothingIsToBeHad) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.unmovable = {0};
  RunAll(*Make());
  EXPECT_THAT(store_.gained, ElementsAre(false));
}

TEST_F(CollectorTest, PlansWhatItWouldDo) {
  store_.Fill(0, {{1, 0, 3 * kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  const auto collector = Make();
  GcPlan plan = collector->Plan(/*all=*/false);
  EXPECT_EQ(plan.scheme, "isozone");
  EXPECT_TRUE(plan.victims.empty()) << "there is space";
  EXPECT_EQ(plan.urgency, 0);
  plan = collector->Plan(/*all=*/true);
  ASSERT_EQ(plan.victims.size(), 2u);
  EXPECT_EQ(plan.victims[0].zone, ZoneId(1));
  EXPECT_EQ(plan.copied(), 4 * kBlock);
  EXPECT_EQ(plan.reclaimed(), 2 * kCapacity - 4 * kBlock);
  store_.free_percent = 1;
  plan = collector->Plan(/*all=*/false);
  EXPECT_EQ(plan.urgency, 1);
  EXPECT_EQ(plan.space.free_percent(), store_.Look().free_percent());
  EXPECT_EQ(plan.victims.size(), 2u);
  EXPECT_FALSE(store_.IsEmpty(0)) << "a plan moves nothing";
}

// --- Collecting in the background ---

TEST_F(CollectorTest, CollectsByItselfWhenSpaceRunsLow) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  const auto collector = Make();
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitUntil([&] { return store_.HasGained(); });
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_GE(collector->Stats().rounds, 1u);
  EXPECT_EQ(collector->Stats().urgency, 0);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, LooksWhenItsClockSaysSo) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  ManualClock clock;
  const auto collector = Make({}, clock);
  ISOZONE_ASSERT_OK(collector->Start());
  const int64_t look_ns = clock.AwaitWaiter(0);
  EXPECT_EQ(look_ns, 100'000'000) << "the interval of the scheme";
  clock.Advance(look_ns - 1);
  store_.Locked([&] { EXPECT_THAT(store_.gained, IsEmpty()); });
  clock.Advance(1);
  store_.WaitForRounds(1);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, RestsByItsClock) {
  constexpr int64_t kWindowNs = 1'000'000;
  store_.Fill(0, {{1, 0, kBlock}, {2, kSegment, kBlock}});
  store_.free_percent = 9.9;  // the collector may work for a twentieth of the time
  ManualClock clock;
  store_.before_write = [&] { clock.Advance(kWindowNs); };
  GcOptions options;
  options.memory = 8 * kMiB;  // one segment at a time
  const auto collector = Make(options, clock);
  ISOZONE_ASSERT_OK(collector->Start());
  const int64_t look_ns = clock.AwaitWaiter(0);
  clock.Advance(look_ns);
  const int64_t rest_ns = clock.AwaitWaiter(look_ns);
  EXPECT_NEAR(static_cast<double>(rest_ns - look_ns), 20.0 * kWindowNs, 1000);
  EXPECT_FALSE(store_.IsEmpty(0));
  collector->Hurry();  // ends the first rest; time ends the second
  const int64_t second_ns = clock.AwaitWaiter(rest_ns);
  clock.Advance(second_ns - clock.NowNs());
  store_.WaitForRounds(1);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

// A collector with memory for one victim at a time, and eight zones that are worth collecting.
class CollectorBatchTest : public CollectorTest {
 protected:
  CollectorBatchTest() {
    for (uint32_t zone = 0; zone < kFull; ++zone)
      store_.Fill(zone, {{zone, 0, kBlock}, {100 + zone, kSegment, kBlock}});
    store_.free_percent = 1;
  }
  static GcOptions OneAtATime(const std::string& scheme) {
    GcOptions options = Named(scheme);
    options.memory = 8 * kMiB;
    return options;
  }
  static constexpr uint32_t kFull = 8;
};

TEST_F(CollectorBatchTest, StopsWhenEnoughIsFree) {
  for (const char* scheme : {"isozone", "zenfs+", "full", "lsm-zgc"}) {
    SCOPED_TRACE(scheme);
    store_.Locked([&] {
      store_.tried.clear();
      store_.gained.clear();
      store_.free_percent = 1;
      store_.after_commit = [&] { store_.free_percent = 50; };  // as if a database had been deleted
    });
    const auto collector = Make(OneAtATime(scheme));
    ISOZONE_ASSERT_OK(collector->Start());
    store_.WaitUntil([&] { return !store_.gained.empty(); });
    collector->Stop();
    EXPECT_EQ(store_.tried.size(), 1u);
    store_.ExpectIntact();
  }
}

TEST_F(CollectorBatchTest, ChoosesByWhatIsAliveNow) {
  store_.after_commit = [&] {
    store_.after_commit = nullptr;
    store_.DeleteLocked(107);  // makes the last zone the best victim
  };
  const auto collector = Make(OneAtATime("isozone"));
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitUntil([&] { return store_.tried.size() >= 2; });
  collector->Stop();
  EXPECT_EQ(store_.tried[0], 0u);
  EXPECT_EQ(store_.tried[1], 7u);
  store_.ExpectIntact();
}

// The schemes of the papers collect all victims of one decision.
TEST_F(CollectorBatchTest, WhoLooksOnceDecidesOnce) {
  store_.Fill(kZones - 1, {{99, 0, kBlock}}, {}, kSegment);  // `zenfs` needs an open zone
  for (const char* scheme : {"zenfs", "lifetime"}) {
    SCOPED_TRACE(scheme);
    store_.Locked([&] {
      store_.tried.clear();
      store_.gained.clear();
      store_.free_percent = 1;
      store_.after_commit = [&] { store_.free_percent = 50; };
    });
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      if (store_.IsEmpty(zone)) store_.Fill(zone, {{200 + zone, 0, kBlock}});
      if (store_.Look().empty_zones < 3) break;
    }
    const auto collector = Make(OneAtATime(scheme));
    ISOZONE_ASSERT_OK(collector->Start());
    collector->Wake();
    store_.WaitUntil([&] { return !store_.gained.empty(); });
    collector->Stop();
    EXPECT_GT(store_.tried.size(), 1u);
    store_.ExpectIntact();
  }
}

// The space of five victims is missing, and a writer waits for it.
TEST_F(CollectorBatchTest, HasHasteOnlyWhileSomebodyWaits) {
  store_.free_percent = 60;
  store_.wanted = true;
  store_.after_commit = [&] { store_.wanted = false; };
  GcOptions options = OneAtATime("isozone");
  options.start_percent = 90;
  const auto collector = Make(options);
  std::vector<double> urgencies;
  store_.before_write = [&] { urgencies.push_back(collector->Stats().urgency); };
  ISOZONE_ASSERT_OK(collector->Start());
  collector->Wake();
  store_.WaitForRounds(1);
  collector->Stop();
  ASSERT_GE(urgencies.size(), 4u);
  EXPECT_EQ(urgencies[0], 1);
  EXPECT_LT(urgencies[3], 0.5);
  store_.ExpectIntact();
}

// --- As ZenFS does ---

class ConfinedCollectorTest : public CollectorTest {
 protected:
  ConfinedCollectorTest() { store_.free_percent = 1; }
  void StartAndLook() {
    collector_ = Make(Named("zenfs"));
    ISOZONE_ASSERT_OK(collector_->Start());
    Look();
  }
  void Look() {
    collector_->Wake();
    store_.WaitForRounds(++looks_);
  }
  uint64_t looks_ = 0;
  std::unique_ptr<Collector> collector_;
};

TEST_F(ConfinedCollectorTest, MovesTablesIntoZonesThatAreOpen) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  store_.Fill(2, {{3, 0, kBlock}}, {}, kSegment);
  store_.small = {2};
  StartAndLook();
  EXPECT_FALSE(store_.attached) << "nobody waits for it";
  collector_->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.ZonesOf(2), ElementsAre(1u));
  EXPECT_THAT(store_.ZonesOf(3), ElementsAre(2u)) << "its zone is not full";
  EXPECT_EQ(store_.Look().empty_zones, kZones - 2);
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WithoutAnOpenZoneItFailsAndTriesAgain) {
  store_.Fill(0, {{1, 0, kBlock}});
  StartAndLook();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(0u));
  store_.Fill(2, {{3, 0, kBlock}}, {}, kSegment);
  Look();
  collector_->Stop();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.gained, ElementsAre(false, true));
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WhatFindsNoRoomStays) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 8 * kBlock, 4 * kBlock}});
  store_.Fill(2, {{3, 0, kBlock}}, {}, kCapacity - 3 * kBlock);
  StartAndLook();
  collector_->Stop();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.ZonesOf(2), ElementsAre(0u, 2u));
  EXPECT_EQ(collector_->Stats().copies.bytes_copied, 3 * kBlock);
  EXPECT_EQ(collector_->Stats().copies.zones, 0u);
  EXPECT_THAT(store_.gained, ElementsAre(false));
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WhoAsksGetsAll) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  store_.small = {2};
  RunAll(*Make(Named("zenfs")));
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
  store_.ExpectIntact();
}

TEST_F(CollectorBatchTest, DoesNotRestWhileAUserIsPacedByItAlone) {
  store_.free_percent = 60;
  store_.paced = true;
  store_.after_commit = [&] { store_.paced = store_.tried.size() < 2; };
  GcOptions options = OneAtATime("isozone");
  options.start_percent = 90;
  const auto collector = Make(options);
  std::vector<double> urgencies;
  store_.before_write = [&] {
    urgencies.push_back(collector->Stats().urgency);
    collector->Hurry();
  };
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitForRounds(1);
  collector->Stop();
  ASSERT_GE(urgencies.size(), 6u);
  EXPECT_EQ(urgencies[0], 1);
  EXPECT_EQ(urgencies[2], 1);
  EXPECT_LT(urgencies[5], 0.5);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WakesForWhoeverWaits) {
  const auto collector = Make(Named("zenfs"));  // it would look only in ten seconds
  ISOZONE_ASSERT_OK(collector->Start());
  for (uint64_t round = 1; round <= 20; ++round) {
    collector->Wake();
    store_.WaitForRounds(round);
  }
}

TEST_F(CollectorTest, WhatCannotBeMovedMakesWayForTheNextChoice) {
  store_.Fill(0, {{1, 0, kBlock}});       // the best victim
  store_.Fill(1, {{2, 0, 10 * kBlock}});  // would be enough
  store_.Fill(2, {{3, 0, 20 * kBlock}});
  store_.unmovable = {0};
  store_.not_to_be_held = {1};
  store_.free_percent = 9.9;
  store_.wanted = true;
  const auto collector = Make(Named("lsm-zgc"));
  ISOZONE_ASSERT_OK(collector->Start());
  collector->Wake();
  store_.WaitForRounds(1);
  EXPECT_TRUE(store_.gained[0]);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(2));
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WhatCouldNotBeMovedIsTriedInTheNextRound) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.unmovable = {0};
  const auto collector = Make();
  EXPECT_EQ(RunAll(*collector).skipped_zones, 1u);
  store_.unmovable.clear();
  EXPECT_EQ(RunAll(*collector).zones, 1u);
}

TEST_F(CollectorTest, WhereDeadZonesWaitTheyAreResetWhenTheSchemeChoosesThem) {
  const auto collector = Make(Named("full"));
  store_.free_percent = 50;
  store_.Fill(0, {{1, 0, kBlock}});
  ISOZONE_ASSERT_OK(collector->Start());
  store_.Delete(1);
  for (uint64_t round = 1; round <= 3; ++round) {
    collector->Wake();
    store_.WaitForRounds(round);
  }
  EXPECT_FALSE(store_.IsEmpty(0)) << "there is space";
  store_.Locked([&] { store_.free_percent = 9; });
  store_.WaitUntil([&] { return store_.HasGained(); });
  EXPECT_TRUE(store_.IsEmpty(0));
  collector->Stop();
  EXPECT_EQ(collector->Stats().copies.zones, 1u);
  EXPECT_EQ(collector->Stats().copies.bytes_reclaimed, kCapacity);
  EXPECT_EQ(collector->Stats().copies.bytes_read, 0u);
}

TEST_F(CollectorTest, StopsPromptlyWhereItHasTime) {
  for (uint32_t zone = 0; zone < 8; ++zone) store_.Fill(zone, {{zone, 0, kBlock}, {zone, 2 * kSegment, kBlock}});
  store_.free_percent = 9.9;  // the collector may work for a twentieth of the time
  GcOptions options;
  options.memory = 8 * kMiB;
  const auto collector = Make(options);
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitForRounds(1);
  collector->Stop();
  store_.ExpectIntact();
  EXPECT_FALSE(store_.attached);
}

TEST_F(CollectorTest, NobodyMayWaitBeforeStartOrAfterStop) {
  const auto collector = Make();
  EXPECT_FALSE(store_.attached);
  ISOZONE_ASSERT_OK(collector->Start());
  EXPECT_TRUE(store_.attached);
  collector->Stop();
  EXPECT_FALSE(store_.attached);
  collector->Wake();
  ISOZONE_ASSERT_OK(collector->Start());
  EXPECT_FALSE(store_.attached);
  store_.Fill(0, {{1, 0, kBlock}});
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kAborted));
  EXPECT_FALSE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, GivesUpForGoodWhereFilesCannotBeMoved) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  store_.commit_error = Status::ReadOnly("the journal is broken");
  const auto collector = Make();
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitUntil([&] { return !store_.gained.empty() && !store_.attached; });
  store_.Locked([&] { store_.commit_error = Status::Ok(); });
  ASSERT_TRUE(collector->SetOptions(Named("zenfs+")).ok());
  EXPECT_FALSE(store_.attached);
  for (int i = 0; i < 3; ++i) collector->Wake();
  collector->Stop();
  EXPECT_EQ(store_.gained.size(), 1u);
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, NoSpaceIsNoReasonToGiveUp) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  store_.writes_before_no_space = 0;
  const auto collector = Make();
  ISOZONE_ASSERT_OK(collector->Start());
  store_.WaitForRounds(1);
  store_.Locked([&] { store_.writes_before_no_space = -1; });
  collector->Wake();
  store_.WaitUntil([&] { return store_.HasGained(); });
  EXPECT_TRUE(store_.attached);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, OptionsCanBeChangedWhileItRuns) {
  const auto collector = Make();
  ISOZONE_ASSERT_OK(collector->Start());
  EXPECT_EQ(store_.throttle, 15);
  EXPECT_TRUE(store_.reset_at_once);
  GcOptions start_at_40 = Named("isozone");
  start_at_40.start_percent = 40;
  ASSERT_TRUE(collector->SetOptions(start_at_40).ok());
  EXPECT_EQ(store_.throttle, 60);
  ASSERT_TRUE(collector->SetOptions(Named("full")).ok());
  EXPECT_FALSE(store_.reset_at_once);
  EXPECT_EQ(store_.throttle, 0);
  EXPECT_TRUE(store_.attached);
  ASSERT_TRUE(collector->SetOptions(Named("none")).ok());
  EXPECT_TRUE(store_.reset_at_once);
  EXPECT_FALSE(store_.attached);
  EXPECT_EQ(collector->options().scheme, "none");
  EXPECT_TRUE(collector->SetOptions(Named("best")).Is(StatusCode::kInvalidArgument));
  EXPECT_EQ(collector->options().scheme, "none");
  ASSERT_TRUE(collector->SetOptions(Named("lifetime")).ok());
  EXPECT_TRUE(store_.attached);
}

TEST_F(CollectorTest, UnknownSchemeNamesTheKnown) {
  const auto collector = Collector::Create(store_, store_, engine_, Named("best"));
  ASSERT_TRUE(collector.status().Is(StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(collector.status().message()), HasSubstr("isozone"));
}

TEST_F(CollectorTest, ManyMayAskAtOnce) {
  for (uint32_t zone = 0; zone < 8; ++zone) store_.Fill(zone, {{zone, 0, kBlock}});
  store_.free_percent = 5;
  const auto collector = Make();
  ISOZONE_ASSERT_OK(collector->Start());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        EXPECT_TRUE(collector->Run(100, {}).ok());
        collector->Wake();
        (void)collector->Plan(true);
        (void)collector->Stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  collector->Stop();
  store_.ExpectIntact();
}

}  // namespace
}  // namespace isozone
