// What the pool does in the background: when it fails, when shares of active zones are missing, and when there is much
// of it.
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"
#include "testing/manual_clock.h"

namespace isozone {
namespace {

using ZonePoolBackgroundTest = ZonePoolTest;

Status JournalHasNoZone() { return Status::NoSpace("the journal has no zone to go on in"); }

// --- Errors of make_durable ---

TEST_F(ZonePoolBackgroundTest, ResetsGoOnOnceWhatIsDeadCanBeMadeDurableAgain) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  std::atomic<bool> passes = false;
  durable_ = [&] { return passes ? Status::Ok() : JournalHasNoZone(); };
  pool_->RemoveLive(zone, kCapacity);
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kNoSpace);
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kFull);
  passes = true;
  while (pool_->Stats().resets == 0) std::this_thread::yield();
  EXPECT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
}

TEST_F(ZonePoolBackgroundTest, WhoHasNoSpaceOutlastsAnErrorThatPasses) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  durable_ = [&] { return durable_calls_ > 1 ? Status::Ok() : JournalHasNoZone(); };
  pool_->RemoveLive(zones[0], kCapacity);
  EXPECT_EQ(MustAcquire(kData).zone(), zones[0]);
  EXPECT_EQ(durable_calls_, 2);
}

TEST_F(ZonePoolBackgroundTest, WhoHasNoSpaceIsToldOfAnErrorThatDoesNotPass) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  durable_ = JournalHasNoZone;
  pool_->RemoveLive(zones[0], kCapacity);
  EXPECT_EQ(pool_->Acquire(kData).status().ToString(),
            "No space: no zone can be reset: the journal has no zone to go on in");
}

// A writer waits for a zone that is about to be reset, although making its death durable has failed before.
TEST_F(ZonePoolBackgroundTest, AnErrorThatHasPassedKeepsNobodyFromTheCollector) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  durable_ = [&] { return durable_calls_ > 1 ? Status::Ok() : JournalHasNoZone(); };
  pool_->collected().ResetAtOnce(false);
  pool_->RemoveLive(zones[0], kCapacity);
  pool_->collected().ResetDead();
  while (durable_calls_ == 0) std::this_thread::yield();
  EXPECT_TRUE(MustAcquire(kData).held());
}

TEST_F(ZonePoolBackgroundTest, WhatIsReadOnlyStaysSo) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  durable_ = [] { return Status::ReadOnly("the journal cannot be written"); };
  pool_->RemoveLive(zones[0], kCapacity);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pool_->Acquire(kData).status().code(), StatusCode::kReadOnly);
  EXPECT_EQ(durable_calls_, 1);
}

// A zone of logs cannot be finished before the ends of the logs are durable, since that would hide them. It goes on
// taking logs.
TEST_F(ZonePoolBackgroundTest, AZoneOfLogsThatCannotBeFinishedYetIsGoneOnWith) {
  Open(/*zone_count=*/40, /*max_active=*/9);  // two zones of logs
  const ZoneRequest large = {ZoneUse::kLog, Lifetime::kShort, 8 * kBlock};
  for (int i = 0; i < 2; ++i) WriteZone(large, 10 * kBlock);
  durable_ = [&] { return durable_calls_ > 1 ? Status::Ok() : JournalHasNoZone(); };
  EXPECT_EQ(MustAcquire(large).room(), kCapacity);
  EXPECT_EQ(MustAcquire(kLog).room(), 6 * kBlock);
  EXPECT_EQ(device_->Finished().size(), 1U);
}

// After a power cut, more zones can be active than their classes may have. A dead zone gives its share back once its
// death is durable. The metadata that makes it durable must not wait for that share.
TEST_F(ZonePoolBackgroundTest, MetadataTakesItsShareFromDataAndDoesNotWaitForResetsThatWaitForIt) {
  device_ = std::make_unique<FakeDevice>(/*zone_count=*/40, /*max_active=*/9);
  for (uint32_t i = 10; i < 17; ++i) device_->Set(ZoneId(i), ZoneState::kClosed, kBlock);
  Create();
  pool_->AddLive(ZoneId(10), kBlock);
  std::vector<ZoneLease> metadata;
  for (int i = 0; i < 2; ++i) metadata.push_back(MustAcquireMetadata());
  durable_ = [&] {
    if (metadata.size() > 2) return Status::Ok();
    auto lease = AcquireMetadata();
    if (lease.ok()) metadata.push_back(std::move(*lease));
    return lease.status();
  };
  ISOZONE_ASSERT_OK(pool_->Start());
  const Status settled = pool_->Settle();
  EXPECT_TRUE(settled.ok()) << settled.ToString();
  EXPECT_EQ(durable_calls_, 1);
  EXPECT_THAT(device_->Finished(), testing::SizeIs(5)) << "all that cuts into reserves";
  EXPECT_THAT(device_->Finished(), testing::Not(testing::Contains(ZoneId(10)))) << "something lives there";
}

TEST_F(ZonePoolBackgroundTest, WhoNeedsAFinishThatCannotBeDurableIsToldSo) {
  Open(/*zone_count=*/40, /*max_active=*/9);  // two zones of logs
  const ZoneRequest large = {ZoneUse::kLog, Lifetime::kShort, 8 * kBlock};
  for (int i = 0; i < 2; ++i) WriteZone(large, 10 * kBlock);
  durable_ = JournalHasNoZone;
  EXPECT_EQ(pool_->Acquire(large).status().code(), StatusCode::kNoSpace);
  EXPECT_EQ(durable_calls_, 3);
}

// --- The pause after an error of make_durable ---

// The thread that resets zones may have nothing to wake up for when the pause after an error begins. Who comes to wait
// for durable metadata during the pause looks again when it ends.
class ZonePoolPauseTest : public ZonePoolTest {
 protected:
  void SetUp() override { clock_ = &manual_clock_; }
  // Lets `zone` die, and the metadata not be made durable for its reset. When this returns the thread sleeps, and the
  // zone waits for the collector.
  void BeginPause(ZoneId zone) {
    durable_ = [this] {
      if (durable_calls_ > 1) return Status::Ok();
      pool_->collected().ResetAtOnce(false);
      return JournalHasNoZone();
    };
    pool_->RemoveLive(zone, kCapacity);
    while (pool_->collected().Candidates().empty()) std::this_thread::yield();
  }
  std::future<Result<ZoneLease>> AcquireOnAThread(const ZoneRequest& request) {
    auto waiter = std::async(std::launch::async, [this, request] { return pool_->Acquire(request); });
    while (pool_->Stats().waits == 0) std::this_thread::yield();
    return waiter;
  }
  // Ends the pause, and returns the zone that `waiter` gets.
  ZoneId EndPause(std::future<Result<ZoneLease>> waiter) {
    EXPECT_EQ(durable_calls_, 1);
    manual_clock_.Advance(ZoneAllocator::kDurablePauseNs);
    EXPECT_EQ(waiter.wait_for(kLong), std::future_status::ready);
    pool_->Stop();  // nobody waits any longer
    const auto lease = waiter.get();
    EXPECT_TRUE(lease.ok()) << lease.status().ToString();
    return lease.ok() ? lease->zone() : ZoneId();
  }

  ManualClock manual_clock_;
};

TEST_F(ZonePoolPauseTest, WhoNeedsADeadZoneGetsItAfterThePause) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  BeginPause(zones[3]);
  EXPECT_EQ(EndPause(AcquireOnAThread(kData)), zones[3]);
}

TEST_F(ZonePoolPauseTest, WhoNeedsTheFinishOfALogGetsItAfterThePause) {
  Open(/*zone_count=*/40, /*max_active=*/9);  // two zones of logs
  const ZoneRequest large = {ZoneUse::kLog, Lifetime::kShort, 8 * kBlock};
  for (int i = 0; i < 2; ++i) WriteZone(large, 10 * kBlock);
  BeginPause(WriteZone(kData, kCapacity));
  auto waiter = AcquireOnAThread(large);
  EXPECT_TRUE(device_->Finished().empty());
  EndPause(std::move(waiter));
  EXPECT_EQ(device_->Finished().size(), 1U);
}

TEST_F(ZonePoolPauseTest, WhoNeedsAZoneThatDiesWithARefusedWriteGetsItAfterThePause) {
  Open();
  ZoneLease refused = MustAcquire(kData);
  const ZoneId zone = refused.zone();
  Write(refused, kBlock);
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(refused.BeginWrite(kBlock));
  std::vector<ZoneId> full;
  while (full.size() < 12) full.push_back(WriteZone(kData, kCapacity));
  BeginPause(full[0]);
  ASSERT_TRUE(pool_->collected().Hold(full[0]));  // it is not reset, then
  auto waiter = AcquireOnAThread({ZoneUse::kData, Lifetime::kMedium, kCapacity});
  EndWrite(refused, 0, DeviceStatus::kTooManyActiveZones);
  while (!pool_->collected().Candidates().empty()) std::this_thread::yield();  // until it has asked for a reset
  EXPECT_EQ(EndPause(std::move(waiter)), zone);
}

// --- The collector's zone ---

// If the zone counted as one too many, a finish would throw away what is left of it, and the next round would gain it
// back.
TEST_F(ZonePoolBackgroundTest, WhatTheCollectorHasLeftIsNotFinishedForItsShare) {
  Open(/*zone_count=*/40, /*max_active=*/9);  // two zones of data
  for (std::vector<ZoneLease> data; data.size() < 2;) Write(data.emplace_back(MustAcquire(kData)), kBlock);
  ZoneRequest whole_zone = kCollector;
  whole_zone.min_room = kCapacity;
  const ZoneId left = WriteZone(whole_zone, 4 * kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(ActiveZones(), 3U);
  EXPECT_NE(WriteZone(whole_zone, kBlock), left);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_THAT(device_->Finished(), testing::ElementsAre(left)) << "now it is data's, and one too many";
}

// --- Failed finishes ---

TEST_F(ZonePoolBackgroundTest, AFinishThatFailsIsTriedAgainUntilTheZoneCostsNoActiveZone) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  const ZoneId zone = lease.zone();
  Write(lease, kBlock);
  ASSERT_TRUE(lease.BeginWrite());
  device_->FailNext(DeviceOp::kFinish, DeviceStatus::kInternalError, 2);
  EndWrite(lease, 0, DeviceStatus::kWriteFault);
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kIoError);
  EXPECT_THAT(device_->Finished(), testing::ElementsAre(zone));
  EXPECT_EQ(ActiveZones(), 0U);
}

TEST_F(ZonePoolBackgroundTest, AZoneThatCannotBeFinishedGivesItsActiveZoneBackWithItsReset) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  const ZoneId zone = lease.zone();
  Write(lease, kBlock);
  ASSERT_TRUE(lease.BeginWrite());
  device_->FailNext(DeviceOp::kFinish, DeviceStatus::kInternalError, UINT64_MAX);
  EndWrite(lease, 0, DeviceStatus::kWriteFault);
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kIoError);
  EXPECT_EQ(ActiveZones(), 1U);  // the zone is still active for the device
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(ActiveZones(), 0U);
}

// --- Dead zones with room ---

TEST_F(ZonePoolBackgroundTest, ADeadZoneOfLogsIsGoneOnWithAndResetOnceNotEveryFrameFits) {
  policy_ = "isozone";
  Open(/*zone_count=*/40);
  const ZoneId first = WriteZone(kLog, kBlock);
  pool_->RemoveLive(first, kBlock);
  constexpr uint64_t kWritten = kCapacity / 8 * 7 + kBlock;
  for (uint64_t i = 1; i < kWritten / kBlock; ++i) {
    ASSERT_EQ(WriteZone(kLog, kBlock), first);
    pool_->RemoveLive(first, kBlock);
  }
  while (pool_->Stats().resets == 0) std::this_thread::yield();
  EXPECT_EQ(pool_->Stats().resets, 1U);
  EXPECT_EQ(pool_->Stats().reset_bytes, kWritten);
}

TEST_F(ZonePoolBackgroundTest, ADeadZoneOfDataIsGoneOnWithWhereLittleIsDead) {
  policy_ = "isozone";
  Open(/*zone_count=*/40);
  const ZoneId little = WriteZone(kData, 2 * kBlock);
  pool_->RemoveLive(little, 2 * kBlock);
  EXPECT_EQ(pool_->Space().dead, 0U) << "it can be had at any time";
  const ZoneId half = WriteZone(kData, kCapacity / 2);
  EXPECT_EQ(half, little);
  pool_->RemoveLive(half, kCapacity / 2);
  while (pool_->Stats().resets == 0) std::this_thread::yield();
  EXPECT_EQ(pool_->Stats().reset_bytes, kCapacity / 2 + 2 * kBlock);
}

TEST_F(ZonePoolBackgroundTest, ADeadZoneIsResetAtOnceWhereEmptyZonesAreFew) {
  policy_ = "isozone";
  Open();
  FillDevice();
  const ZoneId log = WriteZone(kLog, kBlock);
  pool_->RemoveLive(log, kBlock);
  while (pool_->Stats().resets == 0) std::this_thread::yield();
  EXPECT_EQ(device_->Zone(log).state, ZoneState::kEmpty);
}

// --- Many resets ---

TEST_F(ZonePoolBackgroundTest, AFewResetsOfADroppedDatabaseAreInFlightAtATime) {
  constexpr uint64_t kZones = 3'000;
  constexpr size_t kMostResets = 32;
  Open(kZones + 7);
  const std::vector<ZoneId> zones = FillDevice();
  ASSERT_EQ(zones.size(), kZones);
  device_->Hold(DeviceOp::kReset);
  for (const ZoneId zone : zones) pool_->RemoveLive(zone, kCapacity);
  while (pool_->Stats().resets < kZones) {
    device_->LetGoHeld();
    std::this_thread::yield();
  }
  EXPECT_LE(device_->max_held(), kMostResets);
  EXPECT_GE(device_->max_held(), kMostResets / 2) << "resets go on side by side";
  // The first zones die one by one. From then on, a call of make_durable serves half as many resets as may be in
  // flight.
  EXPECT_LE(durable_calls_, static_cast<int>(2 * kZones / kMostResets + kMostResets));
}

}  // namespace
}  // namespace isozone
