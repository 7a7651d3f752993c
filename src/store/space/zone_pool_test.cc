#include "store/space/zone_pool.h"

#include <deque>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/space/zone_pool_test_util.h"
#include "store/zone/allocator/active_budget.h"
#include "store/zone/allocator/zone_reserves.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

// --- What a device must have ---

TEST(CheckDeviceFits, SaysWhatIsNeededAndForWhat) {
  DeviceGeometry geometry;
  geometry.zone_count = 7;
  EXPECT_EQ(CheckDeviceFits(geometry).message(),
            "the device has 7 zones; Isozone needs at least 8: 3 for metadata, 2 for logs, 1 for GC, "
            "2 for data");
  geometry.zone_count = 8;
  geometry.max_active_zones = 6;
  EXPECT_EQ(CheckDeviceFits(geometry).message(),
            "the device allows 6 active zones; Isozone needs at least 9: 4 for metadata, 2 for logs, 1 for GC, "
            "2 for data");
  geometry.max_active_zones = 9;
  geometry.max_open_zones = 8;
  EXPECT_THAT(CheckDeviceFits(geometry).message(), testing::HasSubstr("allows 8 open zones"));
  geometry.max_open_zones = 9;
  EXPECT_TRUE(CheckDeviceFits(geometry).ok());
  geometry.max_open_zones = geometry.max_active_zones = 0;
  EXPECT_TRUE(CheckDeviceFits(geometry).ok());
}

TEST_F(ZonePoolTest, UnknownPolicyNamesTheKnown) {
  FakeDevice device(20);
  EXPECT_THAT(ZonePool::Create(device, {.policy = "best", .make_durable = {}}).status().ToString(),
              testing::HasSubstr("known: isozone, level, lifetime, zenfs"));
}

// --- Leases and placement ---

TEST_F(ZonePoolTest, RequestLargerThanAZoneIsRefused) {
  Open();
  EXPECT_EQ(pool_->Acquire({ZoneUse::kData, Lifetime::kShort, kCapacity + kBlock}).status().code(),
            StatusCode::kInvalidArgument);
}

// --- Resets ---

TEST_F(ZonePoolTest, DeadZoneIsResetOnceItsDeathIsDurable) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  durable_ = [&] {
    EXPECT_EQ(device_->Zone(zone).state, ZoneState::kFull);
    return Status::Ok();
  };
  pool_->RemoveLive(zone, kCapacity);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(durable_calls_, 1);
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
  EXPECT_EQ(pool_->Stats().resets, 1U);
  EXPECT_EQ(pool_->Space().empty_zones, 17U);
}

TEST_F(ZonePoolTest, PartlyWrittenDeadZoneIsResetAndReturnsItsToken) {
  Open();
  const ZoneId zone = WriteZone(kData, kBlock);
  EXPECT_EQ(ActiveZones(), 1U);
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
  EXPECT_EQ(ActiveZones(), 0U);
}

TEST_F(ZonePoolTest, LeasedZoneIsNotReset) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  Write(lease, kBlock);
  pool_->RemoveLive(lease.zone(), kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 0U);
  lease.Release();
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 1U);
}

TEST_F(ZonePoolTest, ZoneWithOneLiveByteIsNotReset) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  pool_->RemoveLive(zone, kCapacity - 1);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kFull);
  EXPECT_EQ(pool_->Space().live, 1U);
  EXPECT_EQ(pool_->Space().dead, kCapacity - 1);
}

TEST_F(ZonePoolTest, ResetsAreInFlightTogether) {
  Open();
  std::vector<ZoneId> zones;
  for (int i = 0; i < 3; ++i) zones.push_back(WriteZone(kData, kCapacity));
  device_->Hold(DeviceOp::kReset);
  for (const ZoneId zone : zones) pool_->RemoveLive(zone, kCapacity);
  device_->WaitUntilHeld(3);
  device_->LetGo();
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 3U);
}

TEST_F(ZonePoolTest, NothingIsResetBeforeStart) {
  device_ = std::make_unique<FakeDevice>(20);
  device_->Set(ZoneId(5), ZoneState::kFull, kCapacity);
  device_->Set(ZoneId(6), ZoneState::kFull, kCapacity);
  Create();
  ASSERT_TRUE(pool_->Settle().ok());
  pool_->AddLive(ZoneId(6), kBlock);
  ISOZONE_ASSERT_OK(pool_->Start());
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(ZoneId(5)).state, ZoneState::kEmpty);
  EXPECT_EQ(device_->Zone(ZoneId(6)).state, ZoneState::kFull);
}

TEST_F(ZonePoolTest, WhatCannotBeMadeDurableIsNotReset) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  durable_ = [] { return Status::ReadOnly("the journal cannot be written"); };
  pool_->RemoveLive(zones[0], kCapacity);
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kReadOnly);
  EXPECT_EQ(device_->Zone(zones[0]).state, ZoneState::kFull);
  EXPECT_EQ(pool_->Acquire(kData).status().ToString(),
            "Read-only: no zone can be reset: the journal cannot be written");
}

TEST_F(ZonePoolTest, FailedResetLeavesTheZoneBrokenAndIsReportedOnce) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  device_->FailNext(DeviceOp::kReset, DeviceStatus::kWriteFault);
  pool_->RemoveLive(zone, kCapacity);
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kIoError);
  EXPECT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().failed_resets, 1U);
  EXPECT_EQ(pool_->Space().unusable_zones, 1U);
  EXPECT_EQ(pool_->Zones()[zone.value()].use, ZoneUse::kUnusable);
}

TEST_F(ZonePoolTest, ZoneThatGoesOfflineInAResetIsNoCapacity) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  device_->Hold(DeviceOp::kReset);
  pool_->RemoveLive(zone, kCapacity);
  device_->WaitUntilHeld(1);
  device_->FailNext(DeviceOp::kReset, DeviceStatus::kZoneIsOffline);
  device_->Set(zone, ZoneState::kOffline, 0);
  device_->LetGo();
  EXPECT_EQ(pool_->Settle().code(), StatusCode::kIoError);
  EXPECT_EQ(pool_->Space().capacity, 19 * kCapacity);
}

// --- Space ---

TEST_F(ZonePoolTest, NoSpaceOnlyWhenThereIsNoneAndWritingGoesOnWhenSomeIsFreed) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  EXPECT_EQ(zones.size(), 13U);
  EXPECT_EQ(pool_->Space().free, 0U);
  EXPECT_EQ(pool_->Space().empty_zones, 4U);
  EXPECT_THAT(pool_->Acquire(kData).status().ToString(), testing::StartsWith("No space: the device is full"));
  pool_->RemoveLive(zones[3], kCapacity);
  EXPECT_EQ(MustAcquire(kData).zone(), zones[3]);  // waits until the zone is reset
}

TEST_F(ZonePoolTest, EmptyZonesAreKeptForLogsAndMetadata) {
  Open();
  FillDevice();
  ZoneLease log = MustAcquire(kLog);
  Write(log, kCapacity);
  EXPECT_EQ(pool_->Acquire(kLog).status().code(), StatusCode::kNoSpace);
  ZoneLease journal = MustAcquireMetadata();
  ZoneLease checkpoint = MustAcquireMetadata();
  ZoneLease beyond = MustAcquireMetadata();
  EXPECT_EQ(AcquireMetadata().status().code(), StatusCode::kNoSpace);
}

TEST_F(ZonePoolTest, RoomOfAnyLifetimeIsUsedBeforeThereIsNoSpace) {
  Open();
  const ZoneId partial = WriteZone({ZoneUse::kData, Lifetime::kShort, kBlock}, kBlock);
  const std::vector<ZoneId> zones = FillDevice();
  EXPECT_EQ(zones.back(), partial);
}

TEST_F(ZonePoolTest, RoomOfAnIdleWriterIsTakenBeforeThereIsNoSpace) {
  Open();
  ZoneLease idle = MustAcquire(kData);
  Write(idle, kBlock);
  const ZoneId zone = idle.zone();
  EXPECT_EQ(FillDevice().back(), zone);
  EXPECT_FALSE(idle.BeginWrite());
  EXPECT_FALSE(idle.held());
  EXPECT_EQ(pool_->Stats().revoked_leases, 1U);
}

TEST_F(ZonePoolTest, AcquireWaitsForAResetInFlight) {
  Open();
  const std::vector<ZoneId> zones = FillDevice();
  device_->Hold(DeviceOp::kReset);
  pool_->RemoveLive(zones[0], kCapacity);
  device_->WaitUntilHeld(1);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  while (pool_->Stats().waits == 0) std::this_thread::yield();
  device_->LetGo();
  const auto lease = waiter.get();
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->zone(), zones[0]);
  EXPECT_EQ(pool_->histograms().wait_ns.Count(), 1U);
}

TEST_F(ZonePoolTest, FiguresAddUp) {
  Open();
  ZoneLease journal = MustAcquireMetadata();
  const ZoneId full = WriteZone(kData, kCapacity);
  WriteZone(kData, 5 * kBlock);
  pool_->RemoveLive(full, 3 * kBlock);
  const SpaceInfo space = pool_->Space();
  EXPECT_EQ(space.capacity, 20 * kCapacity);
  EXPECT_EQ(space.metadata, 4 * kCapacity);  // including the first three zones
  EXPECT_EQ(space.live, kCapacity + 2 * kBlock);
  EXPECT_EQ(space.dead, 3 * kBlock);
  EXPECT_EQ(space.capacity, space.live + space.dead + space.metadata + space.free + 4 * kCapacity);
  EXPECT_EQ(ActiveZones(), 2U);
  EXPECT_EQ(space.full_zones, 1U);
}

// --- Active and open zones ---

TEST_F(ZonePoolTest, DataNeverTakesTheReservesOfOthers) {
  Open(30, /*max_active=*/14);
  std::vector<ZoneLease> writers;
  for (int i = 0; i < 7; ++i) {
    writers.push_back(MustAcquire(kData));
    Write(writers.back(), kBlock);
    ASSERT_TRUE(writers.back().BeginWrite());
  }
  auto eighth = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  while (pool_->Stats().waits == 0) std::this_thread::yield();
  ZoneLease wal = MustAcquire(kLog);
  ZoneLease manifest = MustAcquire(kLog);
  std::vector<ZoneLease> metadata;
  for (int i = 0; i < 3; ++i) metadata.push_back(MustAcquireMetadata());
  EXPECT_EQ(pool_->Stats().waits, 1U);
  EXPECT_EQ(ActiveZones(), 12U);  // one zone for metadata and the collector's zone are left
  EndWrite(writers[2], 0);
  const auto lease = eighth.get();
  ASSERT_TRUE(lease.ok());
  EXPECT_FALSE(writers[2].BeginWrite());
  for (ZoneLease& writer : writers) {
    if (writer.held()) EndWrite(writer, 0);
  }
}

TEST_F(ZonePoolTest, FinishMakesWayForTheNextAndNobodyWaitsForIt) {
  Open(40, /*max_active=*/9);  // two for data
  const ZoneRequest short_lived = {ZoneUse::kData, Lifetime::kShort, kBlock};
  const ZoneRequest long_lived = {ZoneUse::kData, Lifetime::kLong, kBlock};
  {
    ZoneLease a = MustAcquire(short_lived);
    ZoneLease b = MustAcquire(short_lived);
    Write(a, 2 * kBlock);
    Write(b, 9 * kBlock);
  }
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_TRUE(device_->Finished().empty());  // nobody needs another zone yet
  MustAcquire(long_lived).Release();
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Finished().size(), 1U);
  EXPECT_EQ(MustAcquire(long_lived).write_pointer(), 0U);
  EXPECT_EQ(pool_->Stats().waits, 0U);
}

TEST_F(ZonePoolTest, AcquireThatNeedsAFinishWaitsForThatOnly) {
  Open(40, /*max_active=*/9);  // two for data
  device_->Hold(DeviceOp::kFinish);
  const ZoneRequest large = {ZoneUse::kData, Lifetime::kShort, 8 * kBlock};
  WriteZone(large, 9 * kBlock);
  const ZoneId fullest = WriteZone(large, 10 * kBlock);
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(large); });
  while (pool_->Stats().waits == 0) std::this_thread::yield();
  device_->LetGo();
  ASSERT_TRUE(waiter.get().ok());
  EXPECT_THAT(device_->Finished(), testing::ElementsAre(fullest));
}

TEST_F(ZonePoolTest, IdleLeaseIsTakenBeforeAnybodyWaits) {
  Open(40, /*max_active=*/9);
  ZoneLease first = MustAcquire(kData);
  ZoneLease second = MustAcquire(kData);
  Write(first, kBlock);
  Write(second, kBlock);
  Write(first, kBlock);
  ZoneLease third = MustAcquire(kData);
  EXPECT_EQ(pool_->Stats().waits, 0U);
  EXPECT_FALSE(second.BeginWrite());  // it was not used for the longest time
  EXPECT_TRUE(first.BeginWrite());
  EndWrite(first, 0);
}

TEST_F(ZonePoolTest, ThirdLogGoesOnInTheZoneOfAnIdleOne) {
  Open(40, /*max_active=*/9);
  ZoneLease wal = MustAcquire(kLog);
  Write(wal, kBlock);
  ZoneLease manifest = MustAcquire(kLog);
  Write(manifest, kBlock);
  const ZoneId zone = wal.zone();
  ZoneLease third = MustAcquire(kLog);
  EXPECT_EQ(third.zone(), zone);
  EXPECT_FALSE(wal.BeginWrite());
}

TEST_F(ZonePoolTest, ZonesOfLogsAreFinishedOnlyWhenTheirEndIsDurable) {
  Open(40, /*max_active=*/9);
  const ZoneRequest large = {ZoneUse::kLog, Lifetime::kShort, 10 * kBlock};
  std::vector<ZoneId> zones = {WriteZone(large, 8 * kBlock), WriteZone(large, 8 * kBlock)};
  durable_ = [&] {
    for (const ZoneId zone : zones) EXPECT_NE(device_->Zone(zone).state, ZoneState::kFull);
    return Status::Ok();
  };
  MustAcquire(large);  // neither zone has room for it
  EXPECT_EQ(device_->Finished().size(), 1U);
  EXPECT_EQ(durable_calls_, 1);
}

TEST_F(ZonePoolTest, LeasesNeverExceedTheOpenZones) {
  Open(40, /*max_active=*/20, /*max_open=*/9);
  ZoneLease first = MustAcquire(kData);
  Write(first, kBlock);
  ZoneLease second = MustAcquire(kData);
  ASSERT_TRUE(second.BeginWrite());
  ZoneLease third = MustAcquire(kData);
  EXPECT_FALSE(first.BeginWrite());
  EndWrite(second, 0);
  EXPECT_TRUE(second.held());
}

// --- The end of a pool ---

TEST_F(ZonePoolTest, ReadOnlyPoolGivesNothing) {
  FakeDevice device(20);
  auto pool = ZonePool::Create(device, {.read_only = true, .make_durable = {}});
  ASSERT_TRUE(pool.ok());
  ISOZONE_ASSERT_OK((*pool)->Start());
  EXPECT_EQ((*pool)->Acquire(kData).status().code(), StatusCode::kReadOnly);
  EXPECT_EQ((*pool)->AcquireForMetadata({}).status().code(), StatusCode::kReadOnly);
}

TEST_F(ZonePoolTest, StopWakesThoseWhoWait) {
  Open(40, /*max_active=*/9);
  std::vector<ZoneLease> writers;
  for (int i = 0; i < 2; ++i) {
    writers.push_back(MustAcquire(kData));
    ASSERT_TRUE(writers.back().BeginWrite());
  }
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData); });
  while (pool_->Stats().waits == 0) std::this_thread::yield();
  pool_->Stop();
  EXPECT_EQ(waiter.get().status().code(), StatusCode::kAborted);
  for (ZoneLease& writer : writers) EndWrite(writer, 0);
}

TEST_F(ZonePoolTest, StopResetsWhatIsDead) {
  Open();
  const ZoneId zone = WriteZone(kData, kCapacity);
  pool_->RemoveLive(zone, kCapacity);
  pool_->Stop();
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
}

// --- Many threads ---

// Writes files of a few blocks and deletes old ones, until `operations` are done. What is left is in files().
class Worker {
 public:
  Worker(ZonePool& pool, FakeDevice& device, uint64_t seed) : pool_(pool), device_(device), random_(seed) {}

  void Run(int operations) {
    for (int i = 0; i < operations; ++i) {
      WriteSome();
      while (files_.size() > 12) DeleteOne();
      if (random_.Chance(0.2)) lease_.Release();
    }
    lease_.Release();
  }
  const std::vector<std::pair<ZoneId, uint64_t>>& files() const { return files_; }

 private:
  void WriteSome() {
    const uint64_t bytes = kBlock * random_.Between(1, 6);
    while (!(lease_.held() && lease_.room() >= bytes && lease_.BeginWrite(bytes))) {
      lease_.Release();
      const ZoneUse use = random_.Chance(0.2) ? ZoneUse::kLog : ZoneUse::kData;
      auto lease = pool_.Acquire({use, static_cast<Lifetime>(random_.Below(kLifetimeCount)), bytes});
      if (lease.ok()) {
        lease_ = std::move(*lease);
      } else {
        ASSERT_EQ(lease.status().code(), StatusCode::kNoSpace) << lease.status().ToString();
        if (files_.empty()) return;  // the other workers hold everything
        DeleteOne();
      }
    }
    const DeviceStatus status = WriteBlocks(device_, lease_, bytes);
    ASSERT_EQ(status, DeviceStatus::kSuccess) << DeviceStatusName(status);
    if (random_.Chance(0.01)) {
      EndWrite(lease_, 0, DeviceStatus::kWriteFault);
    } else {
      files_.emplace_back(lease_.zone(), bytes);
      EndWrite(lease_, bytes);
    }
  }
  void DeleteOne() {
    const size_t index = random_.Below(files_.size());
    pool_.RemoveLive(files_[index].first, files_[index].second);
    files_.erase(files_.begin() + static_cast<ptrdiff_t>(index));
  }

  ZonePool& pool_;
  FakeDevice& device_;
  Random random_;
  ZoneLease lease_;
  std::vector<std::pair<ZoneId, uint64_t>> files_;
};

TEST_F(ZonePoolTest, ManyThreadsKeepEveryFigureRight) {
  const uint64_t seed = TestSeed(42);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Open(24, /*max_active=*/12, /*max_open=*/10);
  std::deque<Worker> workers;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 6; ++i) workers.emplace_back(*pool_, *device_, seed * 100 + i);
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(3'000); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(pool_->Settle().ok());

  std::map<uint32_t, uint64_t> live;
  for (const Worker& worker : workers) {
    for (const auto& [zone, bytes] : worker.files()) live[zone.value()] += bytes;
  }
  uint64_t total = 0;
  for (const ZoneView& view : pool_->Zones()) {
    EXPECT_EQ(view.live, live[view.device.zone.value()]) << "zone " << view.device.zone.value();
    EXPECT_FALSE(view.writing);
    EXPECT_EQ(view.live == 0, view.device.state == ZoneState::kEmpty) << "zone " << view.device.zone.value();
    total += view.live;
  }
  EXPECT_EQ(pool_->Space().live, total);
  EXPECT_LE(device_->max_active_seen(), 12U);
  EXPECT_GT(pool_->Stats().resets, 100U);
}

}  // namespace
}  // namespace isozone
