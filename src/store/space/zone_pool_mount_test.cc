#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"

namespace isozone {
namespace {

using ZonePoolMountTest = ZonePoolTest;

TEST_F(ZonePoolMountTest, EmptyZoneThatARecordNamesIsGivenToNobodyBeforeItWasReset) {
  device_ = std::make_unique<FakeDevice>(20);
  Create();
  const ZoneId zone(3);  // the first zone behind those that are always reserved for metadata
  pool_->ResetBeforeUse(zone);
  durable_ = [&] {
    EXPECT_NE(AcquireMetadata().value().zone(), zone);
    return Status::Ok();
  };
  ISOZONE_ASSERT_OK(pool_->Start());
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(durable_calls_, 1);
  EXPECT_EQ(AcquireMetadata().value().zone(), zone);
}

TEST_F(ZonePoolMountTest, PartlyWrittenZonesOfTheDeviceAreGoneOnWith) {
  device_ = std::make_unique<FakeDevice>(20);
  device_->Set(ZoneId(7), ZoneState::kClosed, 2 * kBlock);
  Create();
  pool_->Adopt(ZoneId(7), {.use = ZoneUse::kData, .data = Lifetime::kLong, .live = 2 * kBlock});
  ISOZONE_ASSERT_OK(pool_->Start());
  EXPECT_EQ(ActiveZones(), 1U);
  ZoneLease lease = MustAcquire(kData);
  EXPECT_EQ(lease.zone(), ZoneId(7));
  EXPECT_EQ(lease.write_pointer(), 2 * kBlock);
}

TEST_F(ZonePoolMountTest, ActiveZonesBeyondTheBudgetAreFinishedFullestFirst) {
  device_ = std::make_unique<FakeDevice>(20, /*max_active=*/9, /*max_open=*/9);
  for (uint32_t i = 5; i < 9; ++i) device_->Set(ZoneId(i), ZoneState::kClosed, i * kBlock);
  Create();
  for (uint32_t i = 5; i < 9; ++i) pool_->AddLive(ZoneId(i), kBlock);
  ISOZONE_ASSERT_OK(pool_->Start());
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_THAT(device_->Finished(), testing::UnorderedElementsAre(ZoneId(8), ZoneId(7)));
  EXPECT_EQ(ActiveZones(), 2U);
}

TEST_F(ZonePoolMountTest, AdoptedMetadataIsWrittenOn) {
  device_ = std::make_unique<FakeDevice>(20);
  device_->Set(ZoneId(4), ZoneState::kClosed, 3 * kBlock);
  device_->Set(ZoneId(5), ZoneState::kFull, kCapacity);
  Create();
  ASSERT_TRUE(pool_->AdoptMetadata(ZoneId(4)).ok());
  ASSERT_TRUE(pool_->AdoptMetadata(ZoneId(5)).ok());
  EXPECT_EQ(pool_->AdoptMetadata(ZoneId(20)).code(), StatusCode::kInvalidArgument);
  ISOZONE_ASSERT_OK(pool_->Start());
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 0U);
  auto journal = pool_->Reopen(ZoneId(4));
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(journal->write_pointer(), 3 * kBlock);
  EXPECT_EQ(pool_->Reopen(ZoneId(4)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(pool_->Reopen(ZoneId(5)).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isozone
