#include "store/zone/isozone_placement.h"

#include <optional>

#include <gtest/gtest.h>

#include "store/zone/placement_test_util.h"
#include "store/zone/zone_table.h"
#include "store/zone/zone_table_test_util.h"

namespace isozone {
namespace {

constexpr ZoneUse kD = ZoneUse::kData;
constexpr ZoneUse kL = ZoneUse::kLog;
using enum Lifetime;
using enum ZoneHeat;

// Zones 0..11 are in three groups in turn: 0, 3, 6, 9 in group 0 and so on. Two groups are busy.
class IsozonePlacementTest : public testing::Test {
 protected:
  IsozonePlacementTest() {
    ZoneGroups groups;
    groups.channel_of_group = {0, 0, 0};
    for (uint16_t zone = 0; zone < 12; ++zone) groups.group_of_zone.push_back(zone % 3);
    groups.confidence_percent.assign(12, 100);
    table_.emplace(EmptyZones(12), std::make_shared<GroupIndex>(12, &groups));
    query_.lifetime = kMedium;
    query_.min_room = kBlock;
    query_.token_available = query_.empty_available = true;
    query_.loads = loads_;
  }
  void MakeIdle(uint32_t zone, DataClass data, uint64_t blocks = 1) {
    table_->Edit(ZoneId(zone))->Lease(kD, data);
    table_->Edit(ZoneId(zone))->AddLive(kBlock);
    table_->Edit(ZoneId(zone))->Advance(blocks * kBlock);
    table_->Edit(ZoneId(zone))->EndLease();
  }
  Placement Place() { return (*MakePlacementPolicy("isozone"))->PlaceData(*table_, query_); }

  std::array<GroupLoad, 3> loads_{};
  std::optional<ZoneTable> table_;
  PlacementQuery query_;
};

TEST_F(IsozonePlacementTest, TakesTheGroupWhereNothingUrgentIsGoingOn) {
  loads_ = {GroupLoad{1, 0}, GroupLoad{0, 3}, GroupLoad{2, 0}};
  EXPECT_EQ(Place(), Open(1));
}

TEST_F(IsozonePlacementTest, TakesTheGroupWithTheFewestWriters) {
  loads_ = {GroupLoad{0, 2}, GroupLoad{0, 3}, GroupLoad{0, 1}};
  EXPECT_EQ(Place(), Open(2));
}

TEST_F(IsozonePlacementTest, TakesTurnsAmongEqualGroups) {
  query_.turn = 1;
  EXPECT_EQ(Place(), Open(1));
  query_.turn = 5;
  EXPECT_EQ(Place(), Open(2));
}

TEST_F(IsozonePlacementTest, PrefersAnIdleZoneOfTheLifetimeInAnEqualGroup) {
  MakeIdle(2, kMedium);
  MakeIdle(0, kLong);
  EXPECT_EQ(Place(), Use(2));
  loads_[2].others = 1;
  EXPECT_EQ(Place(), Open(3)) << "a free group is better than a shared zone";
}

TEST_F(IsozonePlacementTest, NeverMixesLifetimesWhileThereAreZones) {
  MakeIdle(0, kLong);
  EXPECT_EQ(Place().action, Placement::Action::kOpenEmpty);
  query_.token_available = false;
  EXPECT_EQ(Place(), TokenOr(0));
  query_.empty_available = false;
  EXPECT_EQ(Place(), Use(0));
}

TEST_F(IsozonePlacementTest, KeepsLevelsApart) {
  MakeIdle(0, {kMedium, 2});
  MakeIdle(1, {kMedium, 3});
  query_.level = 3;
  EXPECT_EQ(Place(), Use(1));
  query_.level = 4;
  EXPECT_EQ(Place().action, Placement::Action::kOpenEmpty);
  query_.level = DataClass::kNoLevel;
  EXPECT_EQ(Place().action, Placement::Action::kOpenEmpty);
}

TEST_F(IsozonePlacementTest, KeepsSurvivorsApart) {
  MakeIdle(0, {kMedium, 2, kC0});
  MakeIdle(1, {kMedium, 2, kC1C});
  query_.level = 2;
  query_.heat = kC1C;
  EXPECT_EQ(Place(), Use(1));
  query_.heat = kC2;
  EXPECT_EQ(Place().action, Placement::Action::kOpenEmpty);
  query_.token_available = query_.empty_available = false;
  EXPECT_EQ(Place(), Use(1)) << "the coldest there is, rather than no space";
}

TEST_F(IsozonePlacementTest, WidensIntoOtherGroupsOnly) {
  const std::array<uint32_t, 2> taken = {0, 1};
  query_.taken_groups = taken;
  query_.widen = true;
  EXPECT_EQ(Place(), Open(2));
  loads_[2] = {0, 1};
  EXPECT_EQ(Place(), kSpace) << "compaction widens into idle groups";
  query_.urgent = true;
  EXPECT_EQ(Place(), Open(2)) << "a flush goes before compaction";
  loads_[2] = {1, 0};
  EXPECT_EQ(Place(), kSpace) << "but not beside another flush";
  query_.keep_away = false;
  EXPECT_EQ(Place(), Open(2)) << "unless there are few groups";
  query_.keep_away = true;
  query_.isolate = false;
  EXPECT_EQ(Place(), Open(2));
}

TEST_F(IsozonePlacementTest, ALogOpensAZoneInTheQuietestGroup) {
  loads_ = {GroupLoad{1, 0}, GroupLoad{0, 3}, GroupLoad{0, 1}};
  query_.use = kL;
  EXPECT_EQ(PlaceLog(*table_, query_), Open(2));
}

TEST_F(IsozonePlacementTest, ALogWidensIntoGroupsWithoutLogsAndFlushes) {
  loads_ = {GroupLoad{1, 0}, GroupLoad{1, 0}, GroupLoad{0, 3}};
  query_.use = kL;
  query_.urgent = query_.widen = true;
  const std::array<uint32_t, 1> taken = {0};
  query_.taken_groups = taken;
  EXPECT_EQ(PlaceLog(*table_, query_), Open(2));
  loads_[2].urgent = 1;
  EXPECT_EQ(PlaceLog(*table_, query_), kSpace);
  query_.isolate = false;
  EXPECT_EQ(PlaceLog(*table_, query_).action, Placement::Action::kOpenEmpty);
  query_.token_available = false;
  EXPECT_EQ(PlaceLog(*table_, query_), kSpace);
}

TEST_F(IsozonePlacementTest, AFullDeviceHasNoSpace) {
  query_.empty_available = false;
  EXPECT_EQ(Place(), kSpace);
}

}  // namespace
}  // namespace isozone
