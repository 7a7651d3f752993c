#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

using ZonePoolMetadataTest = ZonePoolTest;

// Otherwise what is still possible on a full device, such as renaming a file, would fail after a power cut.
TEST_F(ZonePoolMetadataTest, ALogThatTookItsReserveDoesNotTakeThatOfMetadataAtTheNextMount) {
  Open();
  FillDevice();
  WriteZone(kLog, kBlock);  // in one of the two empty zones that are not reserved for metadata
  constexpr uint32_t kBefore = HomeZones(2) + 2;
  constexpr uint32_t kLeast = HomeZones(2);
  pool_->ReserveForMetadata(kLeast, MetadataClaim::kForced);  // as a mount does at its beginning
  EXPECT_FALSE(pool_->ReserveForMetadata(kBefore + 2, MetadataClaim::kRenewed)) << "there are not so many";
  EXPECT_FALSE(pool_->ReserveForMetadata(kBefore, MetadataClaim::kNew));
  EXPECT_TRUE(pool_->ReserveForMetadata(kBefore, MetadataClaim::kRenewed));
  ZoneLease journal = MustAcquireMetadata();
  ZoneLease checkpoint = MustAcquireMetadata();
}

TEST_F(ZonePoolMetadataTest, TheFirstZonesAreForMetadataOnly) {
  Open();
  for (const ZoneId zone : FillDevice()) EXPECT_GE(zone.value(), 3U);
  EXPECT_EQ(pool_->Reopen(ZoneId(0)).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ZonePoolMetadataTest, ReleasedMetadataIsFreeAgainWithoutFurtherDurability) {
  Open();
  ZoneLease journal = MustAcquireMetadata();
  const ZoneId zone = journal.zone();
  ASSERT_TRUE(journal.BeginWrite());
  ASSERT_EQ(WriteBlocks(*device_, journal, kBlock), DeviceStatus::kSuccess);
  EndWrite(journal, kBlock);
  journal.Release();
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 0U);
  ReleaseMetadata(zone);
  ASSERT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(device_->Zone(zone).state, ZoneState::kEmpty);
  EXPECT_EQ(durable_calls_, 0);
  EXPECT_EQ(MustAcquire(kData).zone(), zone);
}

TEST_F(ZonePoolMetadataTest, MetadataIsToBeHadWhileMetadataIsMadeDurable) {
  Open(30, /*max_active=*/9);
  std::vector<ZoneLease> metadata;
  for (int i = 0; i < 3; ++i) metadata.push_back(MustAcquireMetadata());
  for (ZoneLease& lease : metadata) {
    ASSERT_TRUE(lease.BeginWrite());
    ASSERT_EQ(WriteBlocks(*device_, lease, kBlock), DeviceStatus::kSuccess);
    EndWrite(lease, kBlock);
  }
  const ZoneId dead = WriteZone(kData, kCapacity);
  durable_ = [&] {
    const ZoneId old = metadata[0].zone();
    metadata[0].Release();
    ReleaseMetadata(old);
    return AcquireMetadata().status();  // waits until `old` is reset
  };
  pool_->RemoveLive(dead, kCapacity);
  EXPECT_TRUE(pool_->Settle().ok());
  EXPECT_EQ(pool_->Stats().resets, 2U);
}

// Nobody has to ask for this reset, although the background thread is asleep.
TEST_F(ZonePoolMetadataTest, ReleasedMetadataIsResetAlsoWhereDeadFilesWait) {
  Open();
  pool_->collected().ResetAtOnce(false);
  for (uint64_t i = 1; i <= 20; ++i) {
    WriteAndReleaseMetadata();
    while (pool_->Stats().resets < i) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace isozone
