#include "store/space/zone_lease.h"

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
