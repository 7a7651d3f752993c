#include <atomic>
#include <chrono>
#include <climits>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"

namespace isozone {
namespace {

using ZonePoolCollectionTest = ZonePoolTest;

TEST_F(ZonePoolCollectionTest, CandidatesHaveDataAndGarbageAndNoWriter) {
  Open();
  const ZoneId all_live = WriteZone(kData, kCapacity);
  const ZoneId full = WriteZone(kData, kCapacity);
  const ZoneId partly = WriteZone({ZoneUse::kData, Lifetime::kLong, kBlock}, 4 * kBlock);
  const ZoneId log = WriteZone(kLog, 4 * kBlock);
  ZoneLease leased = MustAcquire({ZoneUse::kData, Lifetime::kExtreme, kBlock});
  Write(leased, 2 * kBlock);
  for (const ZoneId zone : {full, partly, log, leased.zone()}) pool_->RemoveLive(zone, kBlock);
  const std::vector<GcCandidate> candidates = pool_->collected().Candidates();
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].zone, full);
  EXPECT_TRUE(candidates[0].full);
  EXPECT_EQ(candidates[0].valid, kCapacity - kBlock);
  EXPECT_EQ(candidates[0].written, kCapacity);
  EXPECT_EQ(candidates[1].zone, partly);
  EXPECT_FALSE(candidates[1].full);
  EXPECT_EQ(candidates[1].written, 4 * kBlock);
  EXPECT_EQ(candidates[1].data, DataClass(Lifetime::kLong));
  for (const ZoneId zone : {all_live, log, leased.zone(), ZoneId(0)}) EXPECT_FALSE(pool_->collected().Hold(zone));
}

TEST_F(ZonePoolCollectionTest, ACandidateIsAsOldAsWhatWasWrittenAfterIt) {
  Open();
  const ZoneId old = WriteZone(kData, kCapacity);
  const ZoneId young = WriteZone(kData, kCapacity);
  WriteZone(kLog, 4 * kBlock);
  for (const ZoneId zone : {old, young}) pool_->RemoveLive(zone, kBlock);
  const std::vector<GcCandidate> candidates = pool_->collected().Candidates();
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].age, kCapacity + 4 * kBlock);
  EXPECT_EQ(candidates[1].age, 4 * kBlock);
}

TEST_F(ZonePoolCollectionTest, AVictimIsGivenToNobodyAndResetOnlyAfterwards) {
  Open();
  const ZoneId zone = WriteZone(kData, 4 * kBlock);
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->collected().Hold(zone));
  EXPECT_FALSE(pool_->collected().Hold(zone));
  EXPECT_TRUE(pool_->collected().Candidates().empty());
  EXPECT_NE(MustAcquire(kGoesOnInData).zone(), zone);
  pool_->RemoveLive(zone, 3 * kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 0U);
  pool_->collected().LetGo(zone);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 1U);
  EXPECT_EQ(MustAcquire(kData).zone(), zone);
}

TEST_F(ZonePoolCollectionTest, AVictimThatIsLetGoIsGoneOnWith) {
  Open();
  const ZoneId zone = WriteZone(kData, 4 * kBlock);
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->collected().Hold(zone));
  pool_->collected().LetGo(zone);
  EXPECT_EQ(MustAcquire(kGoesOnInData).zone(), zone);
}

TEST_F(ZonePoolCollectionTest, TheCollectorHasAZoneWhereNobodyElseHas) {
  Open();
  FillDevice();
  EXPECT_EQ(pool_->Acquire(kData).status().code(), StatusCode::kNoSpace);
  ZoneRequest request = kData;
  request.gc = true;
  ZoneLease lease = MustAcquire(request);
  Write(lease, kCapacity / 2);
  lease.Release();
  // Any writer may have the rest of the zone, and the collector goes on there itself.
  request.lifetime = kGoesOnInData.lifetime;
  EXPECT_EQ(MustAcquire(request).room(), kCapacity / 2);
  EXPECT_EQ(MustAcquire(kData).room(), kCapacity / 2);
}

// A broken zone that cannot be finished either does not keep the collector's share of the active zones.
TEST_F(ZonePoolCollectionTest, TheCollectorHasAZoneAfterItsLastOneBroke) {
  Open(/*zone_count=*/20, /*max_active=*/9);
  ZoneLease lease = MustAcquire(kCollector);
  Write(lease, kBlock);
  ASSERT_TRUE(lease.BeginWrite());
  device_->FailNext(DeviceOp::kFinish, DeviceStatus::kWriteFault, UINT64_MAX);
  EndWrite(lease, 0, DeviceStatus::kWriteFault);
  EXPECT_FALSE(pool_->Settle().ok());
  EXPECT_EQ(ActiveZones(), 1U);
  EXPECT_TRUE(MustAcquire(kCollector).held());
}

TEST_F(ZonePoolCollectionTest, WhoHasNoSpaceWaitsForARoundThatBeganAfterwards) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  pool_->collected().Attach(true);
  pool_->collected().BeginRound();
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  WaitUntilWanted(1);
  EXPECT_TRUE(pool_->collected().Look().wanted);
  pool_->collected().EndRound(/*gained=*/false);  // it had begun before: the writer asks again, and goes on waiting
  WaitUntilWanted(2);
  pool_->collected().BeginRound();
  pool_->collected().EndRound(/*gained=*/true);  // other writers were quicker to take what this round gained
  WaitUntilWanted(3);
  pool_->collected().BeginRound();
  pool_->RemoveLive(zones[3], kCapacity);
  const auto lease = waiter.get();
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->zone(), zones[3]);
  pool_->collected().EndRound(/*gained=*/true);
  EXPECT_FALSE(pool_->collected().Look().wanted);
  EXPECT_EQ(pool_->Stats().space_waits, 1U);
}

TEST_F(ZonePoolCollectionTest, NoSpaceOnceAWholeRoundHasGainedNothing) {
  Open();
  FillDevice();
  ZoneLease last = MustAcquire(kLog);  // uses up the zone that is reserved for logs
  Write(last, kCapacity);
  pool_->collected().Attach(true);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  auto log_waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kLog).status(); });
  while (pool_->Stats().space_waits < 2) std::this_thread::yield();
  // Metadata does not wait for the collector.
  ZoneLease journal = MustAcquireMetadata();
  pool_->collected().BeginRound();
  pool_->collected().EndRound(/*gained=*/false);
  EXPECT_EQ(waiter.get().code(), StatusCode::kNoSpace);
  EXPECT_EQ(log_waiter.get().code(), StatusCode::kNoSpace);
}

TEST_F(ZonePoolCollectionTest, WhoWantsRoomWaitsUntilThereIsEnough) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  pool_->collected().Attach(true);
  pool_->collected().BeginRound();
  auto waiter = std::async(std::launch::async, [&] { return pool_->AwaitRoom(kCapacity + kBlock); });
  WaitUntilWanted(1);
  EXPECT_TRUE(pool_->collected().Look().wanted);
  pool_->collected().EndRound(/*gained=*/false);  // it had begun before
  WaitUntilWanted(2);
  pool_->collected().BeginRound();
  pool_->RemoveLive(zones[3], kCapacity);
  while (pool_->Space().free_for_data < kCapacity) std::this_thread::yield();
  pool_->collected().EndRound(/*gained=*/true);
  WaitUntilWanted(3);  // for the block that is missing
  pool_->collected().BeginRound();
  pool_->RemoveLive(zones[5], kCapacity);
  const Status status = waiter.get();
  EXPECT_TRUE(status.ok()) << status.ToString();
  pool_->collected().EndRound(/*gained=*/true);
  EXPECT_FALSE(pool_->collected().Look().wanted);
  EXPECT_EQ(pool_->Stats().space_waits, 1U);
}

TEST_F(ZonePoolCollectionTest, ThereIsNoRoomOnceAWholeRoundHasGainedNothing) {
  Open();
  FillDevice();
  EXPECT_EQ(pool_->AwaitRoom(kBlock).code(), StatusCode::kNoSpace);
  pool_->collected().Attach(true);
  EXPECT_EQ(pool_->AwaitRoom(100 * kCapacity).code(), StatusCode::kNoSpace) << "the device never has so much";
  EXPECT_EQ(space_wanted_, 0);
  auto waiter = std::async(std::launch::async, [&] { return pool_->AwaitRoom(kBlock); });
  WaitUntilWanted(1);
  pool_->collected().BeginRound();
  pool_->collected().EndRound(/*gained=*/false);
  EXPECT_EQ(waiter.get().code(), StatusCode::kNoSpace);
}

// The collector does not take what is leased.
TEST_F(ZonePoolCollectionTest, WhoWantsRoomTakesOnlyZonesInWhichSomethingHasDied) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  Write(lease, kBlock);
  const uint64_t free = pool_->Space().free_for_data;
  EXPECT_TRUE(pool_->AwaitRoom(free).ok());
  EXPECT_EQ(pool_->AwaitRoom(free + kBlock).code(), StatusCode::kNoSpace);
  EXPECT_TRUE(lease.BeginWrite());
  EndWrite(lease, 0);
  pool_->RemoveLive(lease.zone(), kBlock / 2);
  EXPECT_TRUE(pool_->collected().Candidates().empty());
  EXPECT_EQ(pool_->AwaitRoom(free + kBlock).code(), StatusCode::kNoSpace);
  EXPECT_FALSE(lease.BeginWrite());
  EXPECT_EQ(pool_->collected().Candidates().size(), 1U);
}

TEST_F(ZonePoolCollectionTest, NobodyWaitsForACollectorThatGoes) {
  Open();
  FillDevice();
  EXPECT_EQ(pool_->Acquire(kData).status().code(), StatusCode::kNoSpace);
  EXPECT_EQ(space_wanted_, 0);
  pool_->collected().Attach(true);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  WaitUntilWanted(1);
  pool_->collected().Attach(false);
  EXPECT_EQ(waiter.get().code(), StatusCode::kNoSpace);
}

// After the reset has failed, and before the next round begins, the writer must ask the collector for space again.
TEST_F(ZonePoolCollectionTest, WhoHasWaitedForAResetWaitsForAWholeRoundAfterwards) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  pool_->collected().Attach(true);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  WaitUntilWanted(1);
  device_->Hold(DeviceOp::kReset);
  pool_->RemoveLive(zones[0], kCapacity);
  device_->WaitUntilHeld(1);
  pool_->collected().BeginRound();
  pool_->collected().EndRound(/*gained=*/false);
  while (pool_->collected().Look().wanted) std::this_thread::yield();  // the reset will give a zone back
  device_->FailNext(DeviceOp::kReset, DeviceStatus::kWriteFault);
  device_->LetGo();
  while (space_wanted_ < 2 && waiter.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
  pool_->collected().BeginRound();
  pool_->RemoveLive(zones[1], kCapacity);
  const auto lease = waiter.get();
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->zone(), zones[1]);
  pool_->collected().EndRound(/*gained=*/true);
}

// A round that begins while the writer itself gives a reset to the device does not know of the writer.
TEST_F(ZonePoolCollectionTest, WhoHasResetAZoneWaitsForAWholeRoundAfterwards) {
  device_ = std::make_unique<FakeDevice>(20);
  Create();  // without a thread that resets zones, so that the writer does
  FillDevice();
  pool_->collected().Attach(true);
  std::atomic<int> wanted_before = INT_MAX;
  device_->BeforeNextReset([&] {
    EXPECT_FALSE(pool_->collected().Look().wanted);
    pool_->collected().BeginRound();
    pool_->collected().EndRound(/*gained=*/false);
    wanted_before = space_wanted_.load();
  });
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  WaitUntilWanted(1);
  WriteAndReleaseMetadata();
  while (space_wanted_ <= wanted_before && waiter.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
  pool_->collected().BeginRound();
  pool_->ReserveForMetadata(HomeZones(2) + 1, MetadataClaim::kForced);  // which leaves one more zone to data
  const Status status = waiter.get();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(pool_->Stats().resets, 1U);
  pool_->collected().EndRound(/*gained=*/true);
}

TEST_F(ZonePoolCollectionTest, TheCollectorWaitsForNobodyWhoWrites) {
  Open();
  FillDevice();
  ZoneLease log = MustAcquire(kLog);
  ZoneLease journal = MustAcquireMetadata();
  ASSERT_TRUE(log.BeginWrite());
  auto collector = std::async(std::launch::async, [&] { return pool_->Acquire(kCollector).status(); });
  EXPECT_EQ(collector.wait_for(kLong), std::future_status::ready);
  EndWrite(log, 0);
  log.Release();
  EXPECT_EQ(collector.get().code(), StatusCode::kNoSpace);
}

TEST_F(ZonePoolCollectionTest, TheCollectorWaitsForTheCheckpointThatGivesItsReserveBack) {
  Open();
  FillDevice();
  ZoneLease first = MustAcquireMetadata();
  ZoneLease second = MustAcquireMetadata();
  const ZoneId given_back = first.zone();
  checkpoint_pending_ = true;
  auto collector = std::async(std::launch::async, [&] { return pool_->Acquire(kCollector); });
  while (checkpoints_wanted_ == 0) std::this_thread::yield();
  ASSERT_TRUE(first.BeginWrite());
  ASSERT_EQ(WriteBlocks(*device_, first, kBlock), DeviceStatus::kSuccess);
  EndWrite(first, kBlock);
  first.Release();
  ReleaseMetadata(given_back);
  checkpoint_pending_ = false;
  const auto lease = collector.get();
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->zone(), given_back);
  EXPECT_EQ(checkpoints_wanted_, 1U);
  // Once a checkpoint gives nothing back either, there is no space.
  EXPECT_EQ(pool_->Acquire(kCollector).status().code(), StatusCode::kNoSpace);
  EXPECT_EQ(checkpoints_wanted_, 2U);
}

TEST_F(ZonePoolCollectionTest, WhoFindsTheDeviceFullAsksWhatTheJournalCanGiveBack) {
  Open();
  ZoneLease journal = MustAcquireMetadata();
  ASSERT_TRUE(journal.BeginWrite());
  ASSERT_EQ(WriteBlocks(*device_, journal, kBlock), DeviceStatus::kSuccess);
  EndWrite(journal, kBlock);
  FillDevice();
  checkpoint_pending_ = true;
  auto writer = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  while (checkpoints_wanted_ == 0) std::this_thread::yield();
  const ZoneId zone = journal.zone();
  journal.Release();
  ReleaseMetadata(zone);
  checkpoint_pending_ = false;
  const auto lease = writer.get();
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
}

TEST_F(ZonePoolCollectionTest, NoCheckpointIsTakenWhereAZoneIsToComeAnyway) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  ZoneLease first = MustAcquireMetadata();
  ZoneLease second = MustAcquireMetadata();
  device_->Hold(DeviceOp::kReset);
  pool_->RemoveLive(zones[0], kCapacity);
  device_->WaitUntilHeld(1);
  checkpoint_pending_ = true;
  auto collector = std::async(std::launch::async, [&] { return pool_->Acquire(kCollector); });
  while (pool_->Stats().waits == 0 && checkpoints_wanted_ == 0) std::this_thread::yield();
  device_->LetGo();
  EXPECT_TRUE(collector.get().ok());
  EXPECT_EQ(checkpoints_wanted_, 0U);
}

TEST_F(ZonePoolCollectionTest, DeadZonesWaitForARoundOrForSomebodyWhoNeedsThem) {
  Open();
  pool_->collected().ResetAtOnce(false);
  const std::vector<ZoneId> zones = FillDevice();
  pool_->RemoveLive(zones[0], kCapacity);
  pool_->RemoveLive(zones[1], kCapacity);
  // The thread that resets this zone of metadata would have reset the dead zones of files, too.
  WriteAndReleaseMetadata();
  while (pool_->Stats().resets < 1) std::this_thread::yield();
  EXPECT_EQ(pool_->Stats().resets, 1U);
  EXPECT_EQ(durable_calls_, 0);
  ZoneLease lease = MustAcquire(kData);  // needs a zone, so all dead zones are reset
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 3U);
  pool_->RemoveLive(zones[2], kCapacity);
  pool_->collected().ResetDead();
  while (pool_->Stats().resets < 4) std::this_thread::yield();
  pool_->RemoveLive(zones[3], kCapacity);
  pool_->collected().ResetAtOnce(true);
  while (pool_->Stats().resets < 5) std::this_thread::yield();
}

// A writer that has begun to wait for a dead zone gets it, even if the scheme that is chosen meanwhile lets dead zones
// wait.
TEST_F(ZonePoolCollectionTest, WhoWaitsForADeadZoneGetsItAlsoWhenOthersThenWait) {
  Open(/*zone_count=*/20, /*max_active=*/9);
  for (int i = 0; i < 2; ++i) {  // both zones that logs may have active, with little room left
    ZoneLease log = MustAcquire({ZoneUse::kLog, Lifetime::kShort, kCapacity});
    Write(log, kCapacity - kBlock);
  }
  const std::vector<ZoneId> zones = FillDevice();
  std::promise<void> go_on;
  durable_ = [&, first = true]() mutable {
    if (std::exchange(first, false)) go_on.get_future().wait();
    return Status::Ok();
  };
  device_->Hold(DeviceOp::kFinish);
  ZoneRequest request = kLog;
  request.min_room = 2 * kBlock;
  auto log = std::async(std::launch::async, [&] { return pool_->Acquire(request).status(); });
  while (durable_calls_ == 0) std::this_thread::yield();  // the thread is about to finish a zone of logs
  pool_->RemoveLive(zones[0], kCapacity);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  while (pool_->Stats().waits < 2) std::this_thread::yield();
  pool_->collected().ResetAtOnce(false);
  go_on.set_value();
  device_->WaitUntilHeld(1);
  EXPECT_EQ(waiter.wait_for(kLong), std::future_status::ready);
  device_->LetGo();
  EXPECT_TRUE(waiter.get().ok());
  EXPECT_TRUE(log.get().ok());
}

// The writer needs the zone already when it dies.
TEST_F(ZonePoolCollectionTest, WhoWaitsForSpaceGetsWhatDiesMeanwhile) {
  Open();
  pool_->collected().ResetAtOnce(false);
  const std::vector<ZoneId> zones = FillDevice();
  pool_->collected().Attach(true);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  WaitUntilWanted(1);
  pool_->RemoveLive(zones[0], kCapacity);
  EXPECT_EQ(waiter.wait_for(kLong), std::future_status::ready);
  pool_->collected().Attach(false);
  EXPECT_TRUE(waiter.get().ok());
}

TEST_F(ZonePoolCollectionTest, DeadZonesThatWaitAreCandidatesAndResetOneByOne) {
  Open();
  const ZoneId data = WriteZone(kData, kCapacity);
  const ZoneId log = WriteZone(kLog, kCapacity);
  pool_->collected().ResetAtOnce(false);
  for (const ZoneId zone : {data, log}) pool_->RemoveLive(zone, kCapacity);
  const std::vector<GcCandidate> candidates = pool_->collected().Candidates();
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].valid, 0U);
  EXPECT_EQ(candidates[0].written, kCapacity);
  for (const ZoneId zone : {data, log}) {
    const uint64_t resets = pool_->Stats().resets;
    ASSERT_TRUE(pool_->collected().Hold(zone));
    EXPECT_FALSE(pool_->collected().Hold(zone));
    pool_->collected().LetGo(zone);
    while (pool_->Stats().resets == resets) std::this_thread::yield();
    const std::vector<GcCandidate> left = pool_->collected().Candidates();
    EXPECT_TRUE(zone == log ? left.empty() : left.size() == 1 && left[0].zone == log);
  }
  EXPECT_EQ(pool_->Stats().resets, 2U);
}

TEST_F(ZonePoolCollectionTest, ADeadZoneIsCollectedOnceHoweverLongItsResetTakes) {
  Open();
  const ZoneId first = WriteZone(kData, kCapacity);
  const ZoneId second = WriteZone(kData, kCapacity);
  pool_->collected().ResetAtOnce(false);
  for (const ZoneId zone : {first, second}) pool_->RemoveLive(zone, kCapacity);
  std::promise<void> go_on;
  durable_ = [&, begun = false]() mutable {
    if (!std::exchange(begun, true)) go_on.get_future().wait();
    return Status::Ok();
  };
  ASSERT_TRUE(pool_->collected().Hold(first));
  pool_->collected().LetGo(first);
  while (durable_calls_ == 0) std::this_thread::yield();
  ASSERT_TRUE(pool_->collected().Hold(second));
  pool_->collected().LetGo(second);
  EXPECT_TRUE(pool_->collected().Candidates().empty());
  EXPECT_FALSE(pool_->collected().Hold(second));
  go_on.set_value();
  while (pool_->Stats().resets < 2) std::this_thread::yield();
}

}  // namespace
}  // namespace isozone
