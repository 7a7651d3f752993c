#include "insight/advice/space_account.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"

namespace isozone {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kBlock = 4096;
constexpr uint64_t kZone = 1000 * kBlock;

ZoneSpace DataZone(ZonePhase phase, uint64_t written, uint64_t tables, Lifetime lifetime = Lifetime::kMedium) {
  ZoneSpace zone{.phase = phase, .use = ZoneUse::kData, .lifetime = lifetime, .capacity = kZone, .written = written};
  zone.live = tables;
  zone.named[static_cast<size_t>(FileGroup::kTables)] = tables;
  return zone;
}

SpaceAccount Account(const ZoneSpace& zone) { return AccountSpace({&zone, 1}, 0, kBlock); }

uint64_t Sum(const SpaceAccount& account) {
  return std::accumulate(account.parts.begin(), account.parts.end(), uint64_t{0},
                         [](uint64_t sum, const SpaceShare& share) { return sum + share.bytes; });
}

FileGroup GroupOf(std::vector<std::string> paths) { return FileGroupOf(paths); }

TEST(SpaceAccountTest, FilesAreKnownByTheirNames) {
  EXPECT_EQ(GroupOf({"/db/000012.sst"}), FileGroup::kTables);
  EXPECT_EQ(GroupOf({"/db/000012.sst", "/checkpoint/000012.sst"}), FileGroup::kLinked);
  EXPECT_EQ(GroupOf({"/db/000012.blob"}), FileGroup::kBlobs);
  EXPECT_EQ(GroupOf({"/db/000012.log"}), FileGroup::kLogs);
  EXPECT_EQ(GroupOf({"/db/MANIFEST-000004"}), FileGroup::kLogs);
  EXPECT_EQ(GroupOf({"/db/000012.sst.trash"}), FileGroup::kTrash);
  EXPECT_EQ(GroupOf({"/db/LOG"}), FileGroup::kOther);
  EXPECT_EQ(GroupOf({"/db/CURRENT", "/checkpoint/CURRENT"}), FileGroup::kOther);
  EXPECT_EQ(GroupOf({}), FileGroup::kOther);
}

TEST(SpaceAccountTest, AZoneBeingWrittenIsAliveDeadAndUnwritten) {
  const SpaceAccount account = Account(DataZone(ZonePhase::kLeased, 600 * kBlock, 400 * kBlock));
  EXPECT_EQ(account[SpacePart::kTables].bytes, 400 * kBlock);
  EXPECT_EQ(account[SpacePart::kDeadMedium].bytes, 200 * kBlock);
  EXPECT_EQ(account[SpacePart::kRestWriting].bytes, 400 * kBlock);
  EXPECT_EQ(account.live(), 400 * kBlock);
  EXPECT_EQ(account.dead(), 200 * kBlock);
  EXPECT_EQ(account.writable(), 400 * kBlock);
}

TEST(SpaceAccountTest, DeadDataBesideLiveDataIsTheLifetimesAndInADeadZoneItIsNobodys) {
  EXPECT_EQ(Account(DataZone(ZonePhase::kFull, kZone, kBlock, Lifetime::kShort))[SpacePart::kDeadShort].bytes,
            kZone - kBlock);
  EXPECT_EQ(Account(DataZone(ZonePhase::kFull, kZone, kBlock, Lifetime::kExtreme))[SpacePart::kDeadExtreme].bytes,
            kZone - kBlock);
  EXPECT_EQ(Account(DataZone(ZonePhase::kFull, kZone, 0, Lifetime::kShort))[SpacePart::kDeadZones].bytes, kZone);
  ZoneSpace log = DataZone(ZonePhase::kIdle, 10 * kBlock, 0);
  log.use = ZoneUse::kLog;
  log.named[static_cast<size_t>(FileGroup::kLogs)] = kBlock;
  EXPECT_EQ(Account(log)[SpacePart::kDeadLogs].bytes, 9 * kBlock);
}

TEST(SpaceAccountTest, WhatNoNamedFileHasIsUnnamed) {
  ZoneSpace zone = DataZone(ZonePhase::kLeased, 10 * kBlock, 4 * kBlock);
  zone.live = 7 * kBlock;
  EXPECT_EQ(Account(zone)[SpacePart::kUnnamed].bytes, 3 * kBlock);
}

TEST(SpaceAccountTest, LiveBytesRoundedUpToBlocksAreNotUnnamedData) {
  ZoneSpace zone = DataZone(ZonePhase::kLeased, 10 * kBlock, 4 * kBlock - 100);
  zone.live = 4 * kBlock;
  EXPECT_EQ(Account(zone)[SpacePart::kUnnamed].bytes, 0U);
  EXPECT_EQ(Account(zone)[SpacePart::kDeadMedium].bytes, 6 * kBlock + 100);
}

TEST(SpaceAccountTest, WhatAFinishLeftUnwrittenIsPaddingAsLongAsSomethingLives) {
  ZoneSpace zone = DataZone(ZonePhase::kFull, kZone, 100 * kBlock);
  zone.finished_at = 300 * kBlock;
  EXPECT_EQ(Account(zone)[SpacePart::kPadding].bytes, 700 * kBlock);
  EXPECT_EQ(Account(zone)[SpacePart::kDeadMedium].bytes, 200 * kBlock);
  zone.live = 0;
  zone.named = {};
  EXPECT_EQ(Account(zone)[SpacePart::kDeadZones].bytes, kZone);
}

TEST(SpaceAccountTest, UnwrittenSpaceGoesByWhoMayWriteIt) {
  ZoneSpace sealed = DataZone(ZonePhase::kIdle, 10 * kBlock, 10 * kBlock);
  EXPECT_EQ(Account(sealed)[SpacePart::kRestIdle].bytes, kZone - 10 * kBlock);
  sealed.sealed = true;
  EXPECT_EQ(Account(sealed)[SpacePart::kRestSealed].bytes, kZone - 10 * kBlock);
  EXPECT_EQ(Account(DataZone(ZonePhase::kFailed, kBlock, kBlock))[SpacePart::kUnusable].bytes, kZone - kBlock);
  EXPECT_EQ(Account(DataZone(ZonePhase::kOffline, 0, 0))[SpacePart::kUnusable].bytes, kZone);
  ZoneSpace metadata = DataZone(ZonePhase::kIdle, kBlock, 0);
  metadata.use = ZoneUse::kMetadata;
  EXPECT_EQ(Account(metadata)[SpacePart::kMetadata].bytes, kZone);
}

TEST(SpaceAccountTest, AReadOnlyZoneKeepsWhatLivesAndLosesTheRest) {
  const SpaceAccount account = Account(DataZone(ZonePhase::kRetired, 10 * kBlock, 4 * kBlock));
  EXPECT_EQ(account[SpacePart::kTables].bytes, 4 * kBlock);
  EXPECT_EQ(account[SpacePart::kUnusable].bytes, kZone - 4 * kBlock);
}

TEST(SpaceAccountTest, ReservesComeFromEmptyZones) {
  const std::vector<ZoneSpace> zones(5, ZoneSpace{.capacity = kZone});
  const SpaceAccount account = AccountSpace(zones, 2 * kZone, kBlock);
  EXPECT_EQ(account[SpacePart::kReserved].bytes, 2 * kZone);
  EXPECT_EQ(account[SpacePart::kReserved].zones, 2U);
  EXPECT_EQ(account[SpacePart::kFree].bytes, 3 * kZone);
  EXPECT_EQ(account[SpacePart::kFree].zones, 3U);
  EXPECT_EQ(AccountSpace(zones, 9 * kZone, kBlock)[SpacePart::kFree].bytes, 0U);
}

TEST(SpaceAccountTest, ThePartsAddUpToTheCapacityWhateverTheFiguresSay) {
  constexpr uint64_t kSeed = 23;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<ZoneSpace> zones(random.Below(6));
    uint64_t capacity = 0;
    for (ZoneSpace& zone : zones) {
      zone.phase = static_cast<ZonePhase>(random.Below(9));
      zone.use = static_cast<ZoneUse>(random.Below(kZoneUseCount));
      zone.lifetime = static_cast<Lifetime>(random.Below(kLifetimeCount));
      zone.sealed = random.Below(2) == 0;
      zone.capacity = random.Below(kZone);
      zone.written = random.Below(2 * kZone);
      zone.live = random.Below(2 * kZone);
      for (uint64_t& named : zone.named) named = random.Below(kZone);
      if (random.Below(2) == 0) zone.finished_at = random.Below(2 * kZone);
      capacity += zone.capacity;
    }
    const SpaceAccount account = AccountSpace(zones, random.Below(8 * kZone), kBlock);
    ASSERT_EQ(account.capacity, capacity);
    ASSERT_EQ(Sum(account), capacity);
    ASSERT_LE(account.live() + account.dead() + account.writable(), capacity);
  }
}

TEST(SpaceAccountTest, EveryPartHasItsOwnNameAndText) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kSpacePartCount; ++i) {
    const auto part = static_cast<SpacePart>(i);
    EXPECT_THAT(names, Not(Contains(SpacePartName(part))));
    names.push_back(SpacePartName(part));
    const SpacePartText& text = DescribeSpacePart(part);
    EXPECT_THAT(std::string(text.meaning), ::testing::EndsWith("."));
    EXPECT_FALSE(text.title.empty());
    EXPECT_THAT(std::string(text.freed), ::testing::EndsWith("."));
  }
  EXPECT_EQ(SpacePartName(SpacePart::kDeadExtreme), "dead-extreme");
  EXPECT_EQ(SpacePartName(SpacePart::kUnusable), "unusable");
}

TEST(SpaceAccountTest, ASmallDatabaseInManyZonesIsRemarkedUpon) {
  const std::vector<ZoneSpace> wide(16, DataZone(ZonePhase::kIdle, 100 * kBlock, 50 * kBlock));
  EXPECT_THAT(RemarksOn(AccountSpace(wide, 0, kBlock), 0), Contains(HasSubstr("`stripe_width`")));
  EXPECT_THAT(RemarksOn(AccountSpace(wide, 0, kBlock), 16), Contains(HasSubstr("Nearly all of the 16 zones")));
  const std::vector<ZoneSpace> dense(16, DataZone(ZonePhase::kFull, kZone, 900 * kBlock));
  EXPECT_THAT(RemarksOn(AccountSpace(dense, 0, kBlock), 16), Not(Contains(HasSubstr("`stripe_width`"))));
  const std::vector<ZoneSpace> few(6, DataZone(ZonePhase::kIdle, 100 * kBlock, 50 * kBlock));
  EXPECT_THAT(RemarksOn(AccountSpace(few, 0, kBlock), 0), Not(Contains(HasSubstr("`stripe_width`"))));
  EXPECT_TRUE(RemarksOn(AccountSpace({}, 0, kBlock), 16).empty());
}

TEST(SpaceAccountTest, MuchDeadSpaceOnAFullDeviceIsRemarkedUpon) {
  const std::vector<ZoneSpace> zones(16, DataZone(ZonePhase::kFull, kZone, 600 * kBlock));
  EXPECT_THAT(RemarksOn(AccountSpace(zones, 0, kBlock), 0), Contains(HasSubstr("isozone gc status --victims")));
}

}  // namespace
}  // namespace isozone
