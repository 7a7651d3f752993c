#include "store/space/zone_lease.h"

#include <chrono>
#include <future>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"

namespace isozone {
namespace {

using ZoneLeaseTest = ZonePoolTest;

TEST_F(ZoneLeaseTest, ReleasedZoneGoesOnWhereItStopped) {
  Open();
  const ZoneId zone = WriteZone({ZoneUse::kData, Lifetime::kLong, kBlock}, 3 * kBlock);
  ZoneLease lease = MustAcquire(kData);
  EXPECT_EQ(lease.zone(), zone);
  EXPECT_EQ(lease.write_pointer(), 3 * kBlock);
  EXPECT_EQ(lease.room(), 13 * kBlock);
  EXPECT_EQ(lease.next().value(), zone.value() * 2 * kCapacity + 3 * kBlock);
}

TEST_F(ZoneLeaseTest, ZoneHasOneWriter) {
  Open();
  WriteZone({ZoneUse::kData, Lifetime::kLong, kBlock}, kBlock);
  ZoneLease first = MustAcquire(kData);
  ZoneLease second = MustAcquire(kData);
  EXPECT_NE(first.zone(), second.zone());
}

TEST_F(ZoneLeaseTest, LeaseMovesAndGoesBackOnce) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  ZoneLease moved = std::move(lease);
  EXPECT_FALSE(lease.held());        // NOLINT(bugprone-use-after-move): that it holds nothing then is promised
  EXPECT_FALSE(lease.BeginWrite());  // NOLINT(bugprone-use-after-move)
  moved.Release();
  moved.Release();
  EXPECT_EQ(ActiveZones(), 0U);
  EXPECT_EQ(pool_->Space().empty_zones, 17U);
}

// A write takes the lock of the pool once. Without it, a write begins and is at the device; with it, what was written
// becomes live as the write ends.
TEST_F(ZoneLeaseTest, OnlyTheEndOfAWriteTakesTheLockOfThePool) {
  Open();
  ZoneLease lease = MustAcquire(kLog);
  FillDevice();
  pool_->collected().Attach(true);
  std::promise<void> locked;
  std::promise<void> go_on;
  on_space_wanted_ = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    locked.set_value();
    go_on.get_future().wait();
  };
  auto waiter = std::async(std::launch::async, [&] { return pool_->Acquire(kData).status(); });
  locked.get_future().wait();
  ASSERT_TRUE(lease.BeginWrite(kBlock));
  ASSERT_EQ(WriteBlocks(*device_, lease, kBlock), DeviceStatus::kSuccess);
  auto end = std::async(std::launch::async, [&] { lease.CompleteWrite(kBlock, DeviceStatus::kSuccess); });
  EXPECT_NE(end.wait_for(std::chrono::milliseconds(20)), std::future_status::ready) << "nothing has become live yet";
  go_on.set_value();
  end.wait();
  SpaceClaim claim = lease.Settle(kBlock, DeviceStatus::kSuccess);
  EXPECT_EQ(pool_->Live(lease.zone()), kBlock);
  claim.Release();
  EXPECT_EQ(pool_->Live(lease.zone()), 0U);
  pool_->collected().Attach(false);
  EXPECT_EQ(waiter.get().code(), StatusCode::kNoSpace);
}

TEST_F(ZoneLeaseTest, FullZoneReturnsItsTokenWhileItIsHeld) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  EXPECT_EQ(ActiveZones(), 1U);
  Write(lease, kCapacity);
  EXPECT_EQ(ActiveZones(), 0U);
  lease.Release();
  EXPECT_EQ(pool_->Space().full_zones, 1U);
}

TEST_F(ZoneLeaseTest, ZoneOfAFailedWriteIsNotWrittenAgainBeforeItIsReset) {
  Open();
  ZoneLease lease = MustAcquire({ZoneUse::kData, Lifetime::kLong, kBlock});
  const ZoneId zone = lease.zone();
  Write(lease, kBlock);
  ASSERT_TRUE(lease.BeginWrite());
  EndWrite(lease, 0, DeviceStatus::kWriteFault);
  EXPECT_FALSE(lease.held());
  EXPECT_NE(MustAcquire(kData).zone(), zone);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_THAT(device_->Finished(), testing::ElementsAre(zone));  // so that it costs no active zone
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
  EXPECT_EQ(MustAcquire(kData).zone(), zone);
}

TEST_F(ZoneLeaseTest, ReadOnlyZoneIsNeverWrittenAgain) {
  Open();
  ZoneLease lease = MustAcquire(kData);
  const ZoneId zone = lease.zone();
  Write(lease, kBlock);
  device_->Set(zone, ZoneState::kReadOnly, kBlock);
  ASSERT_TRUE(lease.BeginWrite());
  EndWrite(lease, 0, DeviceStatus::kZoneIsReadOnly);
  EXPECT_EQ(pool_->Space().unusable_zones, 1U);
  EXPECT_EQ(ActiveZones(), 0U);
  pool_->RemoveLive(zone, kBlock);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 0U);
}

}  // namespace
}  // namespace isozone
