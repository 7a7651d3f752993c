#include "store/zone/placement_policy.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/zone/placement_test_util.h"
#include "store/zone/zone_table.h"
#include "store/zone/zone_table_test_util.h"

namespace isozone {
namespace {

struct IdleZone {
  ZoneUse use;
  Lifetime lifetime;
  uint64_t written;  // blocks of 16
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
};

struct PlacementCase {
  std::string name;
  std::vector<IdleZone> idle;  // zones 0, 1, ...; the zones after them are empty
  ZoneUse use = ZoneUse::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t min_room = kBlock;
  bool token = true;
  bool empty = true;
  Placement want;
  std::string policy = "zenfs";
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
};

ZoneTable TableWith(const std::vector<IdleZone>& idle) {
  ZoneTable table(EmptyZones(static_cast<uint32_t>(idle.size()) + 2));
  for (uint32_t i = 0; i < idle.size(); ++i) {
    table.Edit(ZoneId(i))->Lease(idle[i].use, {idle[i].lifetime, idle[i].level, idle[i].heat});
    table.Edit(ZoneId(i))->AddLive(kBlock);
    table.Edit(ZoneId(i))->Advance(idle[i].written * kBlock);
    table.Edit(ZoneId(i))->EndLease();
  }
  return table;
}

class PlacementTest : public testing::TestWithParam<PlacementCase> {};

TEST_P(PlacementTest, Decides) {
  const PlacementCase& c = GetParam();
  const ZoneTable table = TableWith(c.idle);
  PlacementQuery query;
  query.use = c.use;
  query.lifetime = c.lifetime;
  query.level = c.level;
  query.heat = c.heat;
  query.min_room = c.min_room;
  query.token_available = c.token;
  query.empty_available = c.empty;
  auto policy = MakePlacementPolicy(c.policy);
  ASSERT_TRUE(policy.ok());
  const Placement got = c.use == ZoneUse::kLog ? PlaceLog(table, query) : (*policy)->PlaceData(table, query);
  EXPECT_EQ(static_cast<int>(got.action), static_cast<int>(c.want.action));
  EXPECT_EQ(got.zone, c.want.zone);
}

constexpr ZoneUse kD = ZoneUse::kData;
constexpr ZoneUse kL = ZoneUse::kLog;
using enum Lifetime;

INSTANTIATE_TEST_SUITE_P(
    Zenfs, PlacementTest,
    testing::Values(
        PlacementCase{"NothingWrittenOpensTheFirstEmpty", {}, kD, kShort, kBlock, true, true, Open(0)},
        PlacementCase{"LongerLifetimeIsGood", {{kD, kLong, 1}}, kD, kMedium, kBlock, true, true, Use(0)},
        PlacementCase{"NearestLongerIsBest",
                      {{kD, kExtreme, 1}, {kD, kMedium, 1}, {kD, kLong, 1}},
                      kD,
                      kShort,
                      kBlock,
                      true,
                      true,
                      Use(1)},
        PlacementCase{
            "FullestOfEquallyGood", {{kD, kLong, 3}, {kD, kLong, 9}}, kD, kMedium, kBlock, true, true, Use(1)},
        PlacementCase{
            "TooFullIsPassedOver", {{kD, kLong, 3}, {kD, kLong, 15}}, kD, kMedium, 2 * kBlock, true, true, Use(0)},
        PlacementCase{"SameLifetimeRatherOpensNew", {{kD, kMedium, 1}}, kD, kMedium, kBlock, true, true, Open(1)},
        PlacementCase{"SameLifetimeRatherThanFinish", {{kD, kMedium, 1}}, kD, kMedium, kBlock, false, true, Use(0)},
        PlacementCase{"GoodMatchNeedsNoToken", {{kD, kLong, 1}}, kD, kMedium, kBlock, false, true, Use(0)},
        PlacementCase{"ShorterLifetimeIsNoMatch", {{kD, kShort, 1}}, kD, kMedium, kBlock, true, true, Open(1)},
        PlacementCase{"FinishRatherThanNoMatch", {{kD, kShort, 1}}, kD, kMedium, kBlock, false, true, TokenOr(0)},
        PlacementCase{"FinishWithNothingIdle", {}, kD, kMedium, kBlock, false, true, kToken},
        PlacementCase{"NoMatchRatherThanNoSpace", {{kD, kShort, 1}}, kD, kMedium, kBlock, true, false, Use(0)},
        PlacementCase{"NoMatchTakesTheLongestLived",
                      {{kD, kNone, 1}, {kD, kShort, 1}},
                      kD,
                      kExtreme,
                      kBlock,
                      true,
                      false,
                      Use(1)},
        PlacementCase{
            "NotSetMatchesNotSet", {{kD, kNone, 1}, {kD, kNotSet, 1}}, kD, kNotSet, kBlock, true, true, Use(1)},
        PlacementCase{
            "NotSetMatchesNothingElse", {{kD, kNone, 1}, {kD, kLong, 1}}, kD, kNotSet, kBlock, true, true, Open(2)},
        PlacementCase{"LastOfLifetimesHasNoLonger", {{kD, kExtreme, 1}}, kD, kExtreme, kBlock, true, true, Open(1)},
        PlacementCase{"DataKeepsOutOfLogs", {{kL, kLong, 1}}, kD, kMedium, kBlock, true, false, kSpace},
        PlacementCase{"FullDevice", {}, kD, kMedium, kBlock, true, false, kSpace},
        PlacementCase{
            "LogGoesOnInItsLifetime", {{kL, kLong, 1}, {kL, kShort, 1}}, kL, kShort, kBlock, true, true, Use(1)},
        PlacementCase{"LogOpensNew", {{kL, kLong, 1}, {kD, kShort, 1}}, kL, kShort, kBlock, true, true, Open(2)},
        PlacementCase{"LogTakesAnyLogRatherThanWait", {{kL, kLong, 1}}, kL, kShort, kBlock, false, true, Use(0)},
        PlacementCase{"LogKeepsOutOfData", {{kD, kShort, 1}}, kL, kShort, kBlock, false, true, kToken},
        PlacementCase{"LogOnFullDevice", {{kD, kShort, 1}}, kL, kShort, kBlock, true, false, kSpace}),
    [](const auto& info) { return info.param.name; });

PlacementCase Lifetimes(std::string name, std::vector<IdleZone> idle, Lifetime lifetime, bool token, bool empty,
                        Placement want, uint64_t min_room = kBlock) {
  return {std::move(name), std::move(idle), kD, lifetime, min_room, token, empty, want, "lifetime"};
}

INSTANTIATE_TEST_SUITE_P(
    Lifetime, PlacementTest,
    testing::Values(Lifetimes("NothingWrittenOpensTheFirstEmpty", {}, kShort, true, true, Open(0)),
                    Lifetimes("GoesOnInItsLifetime", {{kD, kLong, 1}, {kD, kShort, 1}}, kShort, true, true, Use(1)),
                    Lifetimes("FullestOfItsLifetime", {{kD, kLong, 3}, {kD, kLong, 9}}, kLong, true, true, Use(1)),
                    Lifetimes("TooFullIsPassedOver", {{kD, kLong, 15}}, kLong, true, true, Open(1), 2 * kBlock),
                    Lifetimes("NeverAnother", {{kD, kShort, 1}, {kD, kExtreme, 1}, {kD, kNotSet, 1}}, kLong, true, true,
                              Open(3)),
                    Lifetimes("WaitsForAFinish", {{kD, kExtreme, 1}}, kLong, false, true, kToken),
                    Lifetimes("GoesOnWithoutAToken", {{kD, kLong, 1}}, kLong, false, true, Use(0)),
                    Lifetimes("NoSpaceRatherThanAMix", {{kD, kExtreme, 1}}, kLong, true, false, kSpace),
                    Lifetimes("NotSetIsALifetime", {{kD, kNone, 1}, {kD, kNotSet, 1}}, kNotSet, true, true, Use(1))),
    [](const auto& info) { return info.param.name; });

using enum ZoneHeat;

PlacementCase Levels(std::string name, std::vector<IdleZone> idle, DataClass data, bool token, bool empty,
                     Placement want, uint64_t min_room = kBlock) {
  return {std::move(name), std::move(idle), kD,       data.lifetime, min_room, token, empty, want,
          "level",         data.level,      data.heat};
}

INSTANTIATE_TEST_SUITE_P(
    Level, PlacementTest,
    testing::Values(
        Levels("NothingWrittenOpensTheFirstEmpty", {}, {kShort, 1}, true, true, Open(0)),
        Levels("GoesOnInItsLevel", {{kD, kLong, 1, 2}, {kD, kLong, 1, 3}}, {kLong, 3}, true, true, Use(1)),
        Levels("WhateverItsLifetimeIsNow", {{kD, kShort, 1, 3}}, {kExtreme, 3}, true, true, Use(0)),
        Levels("FullestOfItsLevel", {{kD, kLong, 3, 3}, {kD, kShort, 9, 3}, {kD, kLong, 7, 3}}, {kLong, 3}, true, true,
               Use(1)),
        Levels("FullestThatHasRoom", {{kD, kLong, 15, 3}, {kD, kShort, 9, 3}}, {kLong, 3}, true, true, Use(1),
               2 * kBlock),
        Levels("NeverAnother", {{kD, kLong, 1, 2}, {kD, kLong, 1}}, {kLong, 3}, true, true, Open(2)),
        Levels("LevelsAndHeatsAreApart", {{kD, kLong, 1, 3, kC1C}}, {kLong, 3, kC0}, true, true, Open(1)),
        Levels("SurvivorsGoOnAmongTheirLike", {{kD, kLong, 1, 3, kC0}, {kD, kLong, 1, 3, kC1C}}, {kLong, 3, kC1C}, true,
               true, Use(1)),
        Levels("UnknownLevelsOfOneLifetime", {{kD, kLong, 1}, {kD, kShort, 1}}, {kShort}, true, true, Use(1)),
        Levels("UnknownLevelsOfNoOther", {{kD, kLong, 1}, {kD, kShort, 1, 2}}, {kShort}, true, true, Open(2)),
        Levels("NeedsATokenForANewOne", {{kD, kLong, 1, 2}}, {kLong, 3}, false, true, TokenOr(0)),
        Levels("NeedsATokenAndHasNothing", {}, {kLong, 3}, false, true, kToken),
        Levels("NeedsNoTokenToGoOn", {{kD, kLong, 1, 3}}, {kLong, 3}, false, true, Use(0)),
        Levels("AMixRatherThanNoSpace", {{kD, kLong, 1, 2}}, {kLong, 3}, true, false, Use(0)),
        Levels("DataKeepsOutOfLogs", {{kL, kLong, 1, 3}}, {kLong, 3}, true, false, kSpace)),
    [](const auto& info) { return info.param.name; });

struct ClosestDeathCase {
  std::string name;
  std::vector<IdleZone> idle;
  DataClass data;
  std::optional<ZoneId> want;
  uint64_t min_room = kBlock;
};

class ClosestDeathTest : public testing::TestWithParam<ClosestDeathCase> {};

TEST_P(ClosestDeathTest, Chooses) {
  const ClosestDeathCase& c = GetParam();
  PlacementQuery query;
  query.lifetime = c.data.lifetime;
  query.heat = c.data.heat;
  query.min_room = c.min_room;
  const auto zone = ClosestDeathIdle(TableWith(c.idle), query);
  EXPECT_EQ(zone, c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Order, ClosestDeathTest,
    testing::Values(
        ClosestDeathCase{"Nothing", {}, {kMedium}, {}},
        ClosestDeathCase{"OwnLifetimeFirst", {{kD, kLong, 9}, {kD, kMedium, 1}, {kD, kShort, 9}}, {kMedium}, ZoneId(1)},
        ClosestDeathCase{
            "ThenTheNextLonger", {{kD, kExtreme, 9}, {kD, kLong, 1}, {kD, kShort, 9}}, {kMedium}, ZoneId(1)},
        ClosestDeathCase{"ThenTheNextShorter", {{kD, kNone, 9}, {kD, kShort, 1}}, {kMedium}, ZoneId(1)},
        ClosestDeathCase{"OfEqualsTheSameHeat", {{kD, kLong, 9, -1, kC2}, {kD, kLong, 1, -1, kC0}}, {kLong}, ZoneId(1)},
        ClosestDeathCase{"ThenTheColdest",
                         {{kD, kLong, 9, -1, kC0}, {kD, kLong, 9, -1, kC1C}, {kD, kLong, 1, -1, kC2}},
                         {kLong, -1, kC1H},
                         ZoneId(2)},
        ClosestDeathCase{"ThenTheFullest", {{kD, kLong, 2}, {kD, kLong, 9}, {kD, kLong, 5}}, {kLong}, ZoneId(1)},
        ClosestDeathCase{"WithRoom", {{kD, kLong, 15}, {kD, kShort, 2}}, {kLong}, ZoneId(1), 2 * kBlock},
        ClosestDeathCase{"NeverALog", {{kL, kLong, 1}}, {kLong}, {}}),
    [](const auto& info) { return info.param.name; });

TEST(PlacementPolicy, UnknownNameIsAnsweredWithTheKnownOnes) {
  const auto policy = MakePlacementPolicy("best");
  EXPECT_EQ(policy.status().ToString(),
            "Invalid argument: unknown placement policy \"best\"; known: isozone, level, lifetime, zenfs");
  EXPECT_EQ((*MakePlacementPolicy("zenfs"))->name(), "zenfs");
}

TEST(PlacementPolicy, EveryNameCanBeMade) {
  EXPECT_EQ(PlacementPolicyNames().size(), 4U);
  for (const std::string_view name : PlacementPolicyNames()) EXPECT_EQ((*MakePlacementPolicy(name))->name(), name);
}

}  // namespace
}  // namespace isozone
