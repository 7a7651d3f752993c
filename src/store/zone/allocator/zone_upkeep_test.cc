#include "store/zone/allocator/zone_upkeep.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "store/zone/allocator/zone_allocator.h"

namespace isozone {
namespace {

constexpr uint64_t kCapacity = 64 * kKiB;
constexpr ZoneId kZoneOfLogs{5};

// In this allocator one zone of logs is active, and its finish has failed once.
class FailedFinishOfLogsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<ZoneDescriptor> report;
    for (uint32_t i = 0; i < 20; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
    report[kZoneOfLogs.value()] = found_;
    AllocatorOptions options;
    options.geometry.block_size = 4 * kKiB;
    options.geometry.zone_count = 20;
    options.geometry.zone_size = kCapacity;
    options.geometry.zone_capacity = kCapacity;
    options.geometry.max_active_zones = 14;
    options.metadata_copies = 2;
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy("zenfs")));
    ZoneLedger& ledger = allocator_->ledger();
    ledger.started = true;
    ledger.Adopt(kZoneOfLogs, ZoneUse::kLog);
    ledger.table.Edit(kZoneOfLogs)->AddLive(4 * kKiB);
    ledger.table.Edit(kZoneOfLogs)->BeginFinish();
    ledger.table.Edit(kZoneOfLogs)->Submit();
    upkeep().NoteFailure(kZoneOfLogs, DeviceOp::kFinish, found_);
  }
  ZoneUpkeep& upkeep() { return allocator_->upkeep(); }

  const ZoneDescriptor found_ = {kZoneOfLogs, ZoneState::kClosed, kCapacity, 4 * kKiB};
  std::unique_ptr<ZoneAllocator> allocator_;
};

TEST_F(FailedFinishOfLogsTest, IsTriedAgainOnceTheMetadataIsDurable) {
  EXPECT_TRUE(upkeep().FinishIsComing(Finishes::kAll));
  EXPECT_FALSE(upkeep().FinishIsComing(Finishes::kData));
  EXPECT_TRUE(upkeep().Finish(Finishes::kData).empty()) << "who makes the metadata durable may be the one who asks";
  const std::vector<ZoneCommands> commands = upkeep().Finish(Finishes::kAll);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_TRUE(commands[0].after_durable);
  EXPECT_EQ(commands[0].zones, std::vector<ZoneId>{kZoneOfLogs});
}

TEST_F(FailedFinishOfLogsTest, IsTriedAgainWhenTheMetadataCouldNotBeMadeDurable) {
  const std::vector<ZoneCommands> commands = upkeep().Finish(Finishes::kAll);
  ASSERT_EQ(commands.size(), 1U);
  allocator_->NoteDurability(Status::NoSpace("not now"), /*now_ns=*/1000);
  upkeep().Cancel(commands[0]);
  EXPECT_EQ(allocator_->ledger().table.at(kZoneOfLogs).phase, ZonePhase::kFailed);
  const ZoneAllocator::Work work = allocator_->NextWork(/*now_ns=*/1000);
  EXPECT_TRUE(work.commands.empty());
  EXPECT_EQ(work.until_ns, 1000 + ZoneAllocator::kDurablePauseNs);
  EXPECT_EQ(allocator_->NextWork(work.until_ns).commands.size(), 1U);
}

TEST_F(FailedFinishOfLogsTest, IsNotTriedAgainWhereNothingIsDurableAnyMore) {
  allocator_->NoteDurability(Status::ReadOnly("for good"), /*now_ns=*/1000);
  EXPECT_EQ(allocator_->NextWork(/*now_ns=*/1000).until_ns, ZoneAllocator::kNever);
}

TEST_F(FailedFinishOfLogsTest, IsTriedAFewTimes) {
  for (uint32_t tries = 1; tries < ZoneUpkeep::kFinishTries; ++tries) {
    const std::vector<ZoneCommands> commands = upkeep().Finish(Finishes::kAll);
    ASSERT_EQ(commands.size(), 1U);
    upkeep().Confirm(commands[0]);
    upkeep().NoteFailure(kZoneOfLogs, DeviceOp::kFinish, found_);
  }
  EXPECT_TRUE(upkeep().Finish(Finishes::kAll).empty());
  EXPECT_TRUE(allocator_->ledger().HasToken(kZoneOfLogs)) << "the device still calls it active";
}

// Data can have three active zones, and each holds a little of another lifetime. Then data of a fourth comes.
class WishedFinishTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlock = 4 * kKiB;
  static constexpr uint64_t kBlocks = 64;  // of a zone

  void Open(const char* policy) {
    AllocatorOptions options;
    options.geometry.block_size = kBlock;
    options.geometry.zone_count = 40;
    options.geometry.zone_size = options.geometry.zone_capacity = kBlocks * kBlock;
    options.geometry.max_active_zones = options.geometry.max_open_zones = 10;
    std::vector<ZoneDescriptor> report;
    for (uint32_t i = 0; i < 40; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, kBlocks * kBlock, 0});
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy(policy)));
    allocator_->ledger().started = true;
    // Of rising lifetimes, so that no policy finds a zone of a longer one.
    for (const Lifetime lifetime : {Lifetime::kShort, Lifetime::kMedium, Lifetime::kLong}) Write(lifetime, 1);
  }
  ZoneId Write(Lifetime lifetime, uint64_t blocks) {
    ZoneRequest request;
    request.lifetime = lifetime;
    request.min_room = kBlock;
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    const auto answer = allocator_->Ask(inquiry, 1);
    EXPECT_EQ(answer.action, ZoneAllocator::Answer::Action::kGranted);
    EXPECT_TRUE(answer.grant.state->BeginWrite());
    allocator_->EndWrite(answer.grant, blocks * kBlock, /*live=*/blocks * kBlock);
    allocator_->Release(answer.grant);
    return answer.grant.zone;
  }
  std::vector<ZoneId> FinishesDue() {
    std::vector<ZoneId> zones;
    for (const ZoneCommands& commands : allocator_->NextWork(1).commands) {
      EXPECT_EQ(commands.op, DeviceOp::kFinish);
      zones.insert(zones.end(), commands.zones.begin(), commands.zones.end());
    }
    return zones;
  }

  std::unique_ptr<ZoneAllocator> allocator_;
};

TEST_F(WishedFinishTest, TheBaselineLosesWhateverIsLeft) {
  Open("zenfs");
  Write(Lifetime::kExtreme, 1);
  EXPECT_EQ(FinishesDue().size(), 1U);
}

TEST_F(WishedFinishTest, IsozoneFinishesOnlyWhatIsNearlyFull) {
  Open("isozone");
  const ZoneId mixed = Write(Lifetime::kExtreme, 1);
  EXPECT_EQ(allocator_->ledger().stats.mixed_classes, 1U);
  EXPECT_TRUE(FinishesDue().empty());
  EXPECT_EQ(Write(Lifetime::kExtreme, kBlocks - 4), mixed);  // two blocks of 64 are left, 3 %
  EXPECT_TRUE(FinishesDue().empty());
  EXPECT_EQ(Write(Lifetime::kExtreme, 1), mixed);
  EXPECT_EQ(FinishesDue(), std::vector<ZoneId>{mixed});
  allocator_->upkeep().NoteFinish(mixed);
  EXPECT_EQ(allocator_->ledger().table.at(Write(Lifetime::kExtreme, 1)).data.lifetime, Lifetime::kExtreme)
      << "it has a zone of its own now";
  EXPECT_TRUE(FinishesDue().empty());
}

TEST_F(WishedFinishTest, AZoneThatIsFullMakesWayByItself) {
  Open("isozone");
  const ZoneId mixed = Write(Lifetime::kExtreme, 1);
  EXPECT_EQ(Write(Lifetime::kExtreme, kBlocks - 2), mixed);
  EXPECT_EQ(allocator_->ledger().table.at(mixed).phase, ZonePhase::kFull);
  EXPECT_TRUE(FinishesDue().empty());
  EXPECT_EQ(allocator_->ledger().table.at(Write(Lifetime::kExtreme, 1)).data.lifetime, Lifetime::kExtreme);
}

TEST_F(WishedFinishTest, WhoeverWaitsIsMadeRoomForAtAnyLoss) {
  Open("isozone");
  ZoneRequest request;
  request.lifetime = Lifetime::kExtreme;
  request.min_room = kBlocks * kBlock;
  ZoneAllocator::Inquiry inquiry(*allocator_, request);
  const auto answer = allocator_->Ask(inquiry, 1);
  ASSERT_EQ(answer.action, ZoneAllocator::Answer::Action::kExecute);
  ASSERT_EQ(answer.commands.size(), 1U);
  EXPECT_EQ(answer.commands[0].op, DeviceOp::kFinish);
  EXPECT_EQ(answer.commands[0].zones.size(), 1U);
}

// Writers have all active zones that data can have, and one more waits. The zone that becomes idle is the one it
// waits for: if the background finished it first, all that is left of it would be lost.
TEST_F(WishedFinishTest, AZoneThatAWaiterCanTakeIsLeftToIt) {
  Open("isozone");
  std::vector<ZoneGrant> writers;
  ZoneRequest request;
  request.lifetime = Lifetime::kExtreme;
  request.min_room = kBlock;
  for (;;) {
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    const auto answer = allocator_->Ask(inquiry, 1);
    if (answer.action != ZoneAllocator::Answer::Action::kGranted) break;
    EXPECT_TRUE(answer.grant.state->BeginWrite());  // in the middle of a write, so that nobody takes its zone away
    writers.push_back(answer.grant);
  }
  ASSERT_FALSE(writers.empty());
  ZoneAllocator::Inquiry waiter(*allocator_, request);
  ASSERT_EQ(allocator_->Ask(waiter, 1).action, ZoneAllocator::Answer::Action::kWait);
  allocator_->EndWrite(writers[0], kBlock, /*live=*/kBlock);
  allocator_->Release(writers[0]);
  EXPECT_TRUE(FinishesDue().empty());
  const auto answer = allocator_->Ask(waiter, 1);
  ASSERT_EQ(answer.action, ZoneAllocator::Answer::Action::kGranted);
  EXPECT_EQ(answer.grant.zone, writers[0].zone);
}

// The same three zones, and one more lifetime than zones, so that data wishes for a zone; and two zones of logs, which
// is all that logs can have.
class LogBesideFullDataTest : public WishedFinishTest {
 protected:
  using Action = ZoneAllocator::Answer::Action;

  void OpenWithLogs(const char* policy) {
    Open(policy);
    Write(Lifetime::kExtreme, 1);
    EXPECT_TRUE(allocator_->ledger().data_token_wanted);
    manifest_ = OpenLog(Lifetime::kLong);
    wal_ = OpenLog(Lifetime::kShort);
  }
  static ZoneRequest LogRequest(Lifetime lifetime, uint64_t blocks = 1) {
    return {.use = ZoneUse::kLog, .lifetime = lifetime, .min_room = blocks * kBlock};
  }
  ZoneAllocator::Answer Ask(const ZoneRequest& request) {
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    return allocator_->Ask(inquiry, 1);
  }
  // Somebody who asks does what the answer says, and asks again.
  ZoneAllocator::Answer AskAfterRevocations(const ZoneRequest& request) {
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    for (;;) {
      ZoneAllocator::Answer answer = allocator_->Ask(inquiry, 1);
      if (answer.action != Action::kRevoked) return answer;
    }
  }
  ZoneGrant OpenLog(Lifetime lifetime) {
    const auto answer = Ask(LogRequest(lifetime));
    EXPECT_EQ(answer.action, Action::kGranted);
    WriteTo(answer.grant, 1);
    return answer.grant;
  }
  void WriteTo(const ZoneGrant& lease, uint64_t blocks) {
    ASSERT_TRUE(lease.state->BeginWrite());
    allocator_->EndWrite(lease, blocks * kBlock, /*live=*/blocks * kBlock);
  }

  ZoneGrant manifest_;
  ZoneGrant wal_;
};

// What the log waits for comes with a reset. Only the wish of the data is left, for which nothing is lost.
TEST_F(LogBesideFullDataTest, AWishIsNoMoreThanThatBecauseALogWaits) {
  OpenWithLogs("isozone");
  allocator_->Release(wal_);
  allocator_->ledger().table.Edit(wal_.zone)->RemoveLive(kBlock);
  const std::vector<ZoneCommands> resets = allocator_->NextWork(1).commands;
  ASSERT_EQ(resets.size(), 1U);
  ASSERT_EQ(resets[0].zones, std::vector<ZoneId>{wal_.zone});
  allocator_->upkeep().Confirm(resets[0]);

  ZoneAllocator::Inquiry next_wal(*allocator_, LogRequest(Lifetime::kShort));
  EXPECT_EQ(allocator_->Ask(next_wal, 1).action, Action::kWait);
  EXPECT_TRUE(FinishesDue().empty());
  allocator_->upkeep().NoteReset(wal_.zone);
  EXPECT_EQ(allocator_->Ask(next_wal, 1).action, Action::kGranted);
}

TEST_F(LogBesideFullDataTest, ALogTakesOverTheZoneOfOneThatIsBetweenWrites) {
  OpenWithLogs("isozone");
  WriteTo(manifest_, 1);
  WriteTo(wal_, 1);  // last: a log of another lifetime is no choice, however long it has been idle
  ZoneAllocator::Inquiry next_wal(*allocator_, LogRequest(Lifetime::kShort));
  EXPECT_EQ(allocator_->Ask(next_wal, 1).action, Action::kRevoked);
  const auto answer = allocator_->Ask(next_wal, 1);
  ASSERT_EQ(answer.action, Action::kGranted);
  EXPECT_EQ(answer.grant.zone, wal_.zone);
  EXPECT_TRUE(FinishesDue().empty());
  EXPECT_FALSE(wal_.state->BeginWrite()) << "it goes on elsewhere";
  EXPECT_TRUE(manifest_.state->BeginWrite());
}

// Otherwise two logs that are both written would take one zone from each other at each write.
TEST_F(LogBesideFullDataTest, ALogThatGoesOnWritingGetsAZoneOfItsOwn) {
  OpenWithLogs("isozone");
  const auto second = AskAfterRevocations(LogRequest(Lifetime::kShort));
  ASSERT_EQ(second.action, Action::kGranted);
  WriteTo(second.grant, 1);
  ASSERT_FALSE(wal_.state->BeginWrite());
  EXPECT_EQ(Ask(LogRequest(Lifetime::kShort)).action, Action::kExecute);
  EXPECT_EQ(allocator_->ledger().table.totals().finishing, 1U);
}

TEST_F(LogBesideFullDataTest, AZoneThatWasGivenBackCanBeTakenOverAgain) {
  OpenWithLogs("isozone");
  for (int i = 0; i < 3; ++i) {
    const auto taker = AskAfterRevocations(LogRequest(Lifetime::kShort));
    ASSERT_EQ(taker.action, Action::kGranted);
    EXPECT_EQ(taker.grant.zone, wal_.zone);
    WriteTo(taker.grant, 1);
    allocator_->Release(taker.grant);
    const auto next = Ask(LogRequest(Lifetime::kShort));
    ASSERT_EQ(next.action, Action::kGranted);
    EXPECT_EQ(next.grant.zone, wal_.zone);
  }
  EXPECT_EQ(allocator_->ledger().stats.revoked_leases, 3U);
}

TEST_F(LogBesideFullDataTest, ALogTakesOverNoZoneThatHasNotTheRoom) {
  OpenWithLogs("isozone");
  EXPECT_EQ(Ask(LogRequest(Lifetime::kShort, kBlocks)).action, Action::kExecute);
  EXPECT_TRUE(wal_.state->BeginWrite());
}

TEST_F(LogBesideFullDataTest, TheBaselineFinishesAZoneOfDataForALog) {
  OpenWithLogs("zenfs");
  const auto answer = Ask(LogRequest(Lifetime::kShort));
  ASSERT_EQ(answer.action, Action::kExecute);
  EXPECT_EQ(answer.commands[0].op, DeviceOp::kFinish);
  EXPECT_TRUE(wal_.state->BeginWrite());
}

// Every active zone that data can have is in use, no zone is empty but reserved ones, and the collector has the
// survivors of two classes. If it left its zone for the second, that would be finished, and the next round would gain
// what this one has lost: for ever, while a writer waits.
TEST(CollectorsZoneTest, TakesTheNextClassWhereNoZoneCanBeSpared) {
  constexpr uint64_t kBlock = 4 * kKiB;
  constexpr uint64_t kCapacity = 64 * kBlock;
  AllocatorOptions options;
  options.geometry.block_size = kBlock;
  options.geometry.zone_count = 12;
  options.geometry.zone_size = options.geometry.zone_capacity = kCapacity;
  options.geometry.max_active_zones = options.geometry.max_open_zones = 9;
  std::vector<ZoneDescriptor> report;
  for (uint32_t i = 0; i < 12; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
  ZoneAllocator allocator(report, options, std::move(*MakePlacementPolicy("lifetime")));
  allocator.ledger().started = true;
  ZoneRequest request;
  request.min_room = kBlock;
  const auto write = [&](uint64_t blocks) -> std::optional<ZoneId> {
    ZoneAllocator::Inquiry inquiry(allocator, request);
    const auto answer = allocator.Ask(inquiry, 1);
    if (answer.action != ZoneAllocator::Answer::Action::kGranted) return std::nullopt;
    EXPECT_TRUE(answer.grant.state->BeginWrite());
    allocator.EndWrite(answer.grant, blocks * kBlock, /*live=*/blocks * kBlock);
    allocator.Release(answer.grant);
    return answer.grant.zone;
  };
  // Data fills what it can have: whole zones, and the two that stay active.
  request.lifetime = Lifetime::kShort;
  while (allocator.ledger().HasEmpty(BudgetClass::kData)) ASSERT_TRUE(write(64));
  request.gc = true;
  request.lifetime = Lifetime::kLong;
  const auto first = write(20);
  ASSERT_TRUE(first);
  EXPECT_EQ(allocator.ledger().CollectorsZone(), first);
  request.lifetime = Lifetime::kMedium;
  EXPECT_EQ(write(20), first);
  EXPECT_EQ(allocator.ledger().CollectorsZone(), first);
  EXPECT_TRUE(allocator.NextWork(1).commands.empty()) << "nothing is to be finished";
}

}  // namespace
}  // namespace isozone
