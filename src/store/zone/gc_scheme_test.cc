#include "store/zone/gc_scheme.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kCapacity = 100 * kKiB;  // so a percent of a zone is a KiB

std::unique_ptr<GcScheme> Scheme(std::string_view name, std::optional<uint32_t> start_percent = {}) {
  auto scheme = MakeGcScheme(name, start_percent);
  EXPECT_TRUE(scheme.ok()) << scheme.status().ToString();
  return std::move(*scheme);
}

// 100 zones, of which `free` percent of the bytes are free, all in empty zones.
GcSpace Space(uint32_t free, bool wanted = false) {
  return {.zones = 100, .empty_zones = free, .capacity = 100 * kCapacity, .free = free * kCapacity, .wanted = wanted};
}

// A full zone with `valid` percent of valid data.
GcCandidate Zone(uint32_t id, uint32_t valid, DataClass data = {}) {
  return {.zone = ZoneId(id),
          .valid = valid * kKiB,
          .written = kCapacity,
          .capacity = kCapacity,
          .data = data,
          .group = 0,
          .full = true};
}

std::vector<uint32_t> Ids(const std::vector<ZoneId>& zones) {
  std::vector<uint32_t> ids;
  for (const ZoneId zone : zones) ids.push_back(zone.value());
  return ids;
}

std::vector<uint32_t> Victims(const GcScheme& scheme, const GcSpace& space,
                              const std::vector<GcCandidate>& candidates) {
  return Ids(scheme.Decide(space, candidates));
}

struct SchemeCase {
  std::string name;
  std::string scheme;
  GcSpace space;
  std::vector<GcCandidate> candidates;
  std::vector<uint32_t> victims;  // in order
  std::optional<uint32_t> start_percent = {};
};

void PrintTo(const SchemeCase& c, std::ostream* out) { *out << c.scheme << ": " << c.name; }

class GcSchemeTest : public testing::TestWithParam<SchemeCase> {};

TEST_P(GcSchemeTest, Decides) {
  const SchemeCase& c = GetParam();
  const auto scheme = Scheme(c.scheme, c.start_percent);
  EXPECT_EQ(scheme->name(), c.scheme);
  EXPECT_EQ(Victims(*scheme, c.space, c.candidates), c.victims);
  // The order of the candidates must not matter.
  std::vector<GcCandidate> reversed(c.candidates.rbegin(), c.candidates.rend());
  EXPECT_EQ(Victims(*scheme, c.space, reversed), c.victims);
  EXPECT_GT(scheme->Urgency(c.space), 0);
}

std::string CaseName(const testing::TestParamInfo<SchemeCase>& info) { return info.param.name; }

GcCandidate Aged(GcCandidate c, uint64_t age) {
  c.age = age * kKiB;
  return c;
}

GcCandidate NotFull(GcCandidate c) {
  c.written = c.valid + kKiB;
  c.full = false;
  return c;
}

// A class of level 0 .. 6.
DataClass Level(int8_t level, ZoneHeat heat = kNewDataHeat) { return {Lifetime::kMedium, level, heat}; }

INSTANTIATE_TEST_SUITE_P(None, GcSchemeTest,
                         testing::Values(SchemeCase{"NothingEvenWithoutSpace", "none", Space(0), {Zone(1, 1)}, {}},
                                         SchemeCase{
                                             "NothingEvenIfSomebodyWaits", "none", Space(0, true), {Zone(1, 1)}, {}}),
                         CaseName);

// 100 - 3 x (20 - free) percent of garbage: with 10 % free above 70.
INSTANTIATE_TEST_SUITE_P(
    Zenfs, GcSchemeTest,
    testing::Values(SchemeCase{"NothingAboveTwentyPercent", "zenfs", Space(21), {Zone(1, 0)}, {}},
                    SchemeCase{"AtTwentyOnlyMoreThanEverything", "zenfs", Space(20), {Zone(1, 0)}, {}},
                    SchemeCase{"ThresholdFallsWithFreeSpace", "zenfs", Space(10), {Zone(1, 30), Zone(2, 29)}, {2}},
                    SchemeCase{"AtZeroFortyPercentOfGarbage", "zenfs", Space(0), {Zone(1, 60), Zone(2, 59)}, {2}},
                    SchemeCase{
                        "EveryZoneThatIsAboveIt", "zenfs", Space(5), {Zone(9, 1), Zone(4, 2), Zone(6, 3)}, {4, 6, 9}},
                    SchemeCase{"FullZonesOnly", "zenfs", Space(1), {NotFull(Zone(1, 1)), Zone(2, 1)}, {2}},
                    SchemeCase{"StartIsTunable", "zenfs", Space(30), {Zone(1, 59), Zone(2, 61)}, {1}, 50}),
    CaseName);

// Below 10 % free: lower levels first, of each the least valid, until 10 % are free.
INSTANTIATE_TEST_SUITE_P(
    ZenfsPlus, GcSchemeTest,
    testing::Values(
        SchemeCase{"NothingAtTenPercent", "zenfs+", Space(10), {Zone(1, 1)}, {}},
        SchemeCase{"LowerLevelsFirst",
                   "zenfs+",
                   Space(0),
                   {Zone(1, 10, Level(2)), Zone(2, 90, Level(0)), Zone(3, 50, Level(1))},
                   {2, 3, 1}},
        SchemeCase{"OfALevelTheLeastValid",
                   "zenfs+",
                   Space(0),
                   {Zone(1, 50, Level(1)), Zone(2, 10, Level(1)), Zone(3, 30, Level(1))},
                   {2, 3, 1}},
        SchemeCase{"LifetimeWhereTheLevelIsNotKnown",
                   "zenfs+",
                   Space(0),
                   {Zone(1, 10, Lifetime::kExtreme), Zone(2, 90, Lifetime::kMedium), Zone(3, 20, Lifetime::kLong)},
                   {2, 3, 1}},
        SchemeCase{
            "UntilTenPercentAreFree", "zenfs+", Space(8), {Zone(1, 0), Zone(2, 1), Zone(3, 2), Zone(4, 3)}, {1, 2, 3}},
        SchemeCase{"OneIsEnoughForALittle", "zenfs+", Space(9), {Zone(1, 0), Zone(2, 1)}, {1}},
        SchemeCase{"StartIsTunable", "zenfs+", Space(29), {Zone(1, 0), Zone(2, 1)}, {1}, 30},
        SchemeCase{"DeadZonesInTheirTurn",
                   "full",
                   Space(9),
                   {Zone(1, 0, Level(3)), Zone(2, 50, Level(0)), Zone(3, 0, Level(1))},
                   {2, 3}},
        SchemeCase{
            "FullIsTheSame", "full", Space(8), {Zone(1, 0, Level(1)), Zone(2, 1), Zone(3, 2, Level(3))}, {2, 1, 3}}),
    CaseName);

GcSpace Zones(uint32_t zones, uint32_t empty) {
  return {.zones = zones, .empty_zones = empty, .capacity = zones * kCapacity, .free = empty * kCapacity};
}

std::vector<GcCandidate> EveryPercent(uint32_t from, uint32_t to) {
  std::vector<GcCandidate> zones;
  for (uint32_t percent = from; percent <= to; ++percent) zones.push_back(Zone(percent, percent));
  return zones;
}

std::vector<uint32_t> UpTo(uint32_t from, uint32_t to) {
  std::vector<uint32_t> ids;
  for (; from <= to; ++from) ids.push_back(from);
  return ids;
}

// N = Z_t / (1 + Z_e) victims, of the first L = 4 / (1 + E / 5) queues of a quarter each.
INSTANTIATE_TEST_SUITE_P(
    Lifetime, GcSchemeTest,
    testing::Values(
        SchemeCase{"OffAtAQuarterEmpty", "lifetime", Zones(100, 25), {Zone(1, 1)}, {}},
        SchemeCase{"FewVictimsWhileMuchIsEmpty", "lifetime", Zones(100, 24), EveryPercent(1, 20), UpTo(1, 4)},
        SchemeCase{"MoreAsEmptyZonesRunOut", "lifetime", Zones(100, 9), EveryPercent(1, 20), UpTo(1, 10)},
        SchemeCase{"AllOfThemWithNoneEmpty", "lifetime", Zones(100, 0), EveryPercent(1, 99), UpTo(1, 99)},
        SchemeCase{"AtLeastOne", "lifetime", Zones(3, 0), {Zone(1, 1)}, {1}},
        // E = 20: L = 4 / 5, at least 1; E = 5: L = 2; E = 4: L = 2.2; E = 1: L = 3.3.
        SchemeCase{"OneQueueAtTwentyPercent", "lifetime", Zones(100, 20), {Zone(1, 24), Zone(2, 25)}, {1}},
        SchemeCase{"TwoQueuesAtFivePercent", "lifetime", Zones(100, 5), {Zone(1, 49), Zone(2, 50)}, {1}},
        SchemeCase{"ThreeQueuesAtOnePercent", "lifetime", Zones(100, 1), {Zone(1, 74), Zone(2, 75)}, {1}},
        SchemeCase{"LeastValidFirstThenTheLongestLived",
                   "lifetime",
                   Zones(100, 0),
                   {Zone(1, 20, Lifetime::kShort), Zone(2, 20, Lifetime::kExtreme), Zone(3, 10, Lifetime::kShort)},
                   {3, 2, 1}},
        SchemeCase{
            "WithoutTheEquationsOneOfAnyQueue", "lifetime-one-victim", Zones(100, 20), {Zone(1, 98), Zone(2, 99)}, {1}},
        SchemeCase{
            "WithoutThemOneHoweverLittleIsEmpty", "lifetime-one-victim", Zones(100, 0), {Zone(1, 1), Zone(2, 1)}, {1}},
        SchemeCase{"StartIsTunable", "lifetime", Zones(100, 9), {Zone(1, 1)}, {}, 5}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    LsmZgc, GcSchemeTest,
    testing::Values(
        SchemeCase{"NothingAtTheStart", "lsm-zgc", Space(10), {Zone(1, 1)}, {}},
        SchemeCase{"LowestUtilisationFirst",
                   "lsm-zgc",
                   Space(0),
                   {Zone(1, 50, Level(0)), Zone(2, 70), Zone(3, 10, Level(4))},
                   {3, 1, 2}},
        SchemeCase{"UntilTheStartIsReached", "lsm-zgc", Space(9), {Zone(1, 50), Zone(2, 51), Zone(3, 52)}, {1, 2, 3}},
        SchemeCase{"AndNotFurther", "lsm-zgc", Space(9), {Zone(1, 50), Zone(2, 50), Zone(3, 50)}, {1, 2}},
        SchemeCase{"StartIsTunable", "lsm-zgc", Space(15), {Zone(1, 1)}, {1}, 20}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Isozone, GcSchemeTest,
    testing::Values(
        SchemeCase{"NothingAtTheStart", "isozone", Space(10), {Zone(1, 1)}, {}},
        SchemeCase{"UnlessSomebodyWaits", "isozone", Space(10, true), {Zone(1, 1), Zone(2, 2)}, {1}},
        SchemeCase{"NothingWhereItPaysNothing", "isozone", Space(9), {Zone(1, 95)}, {}},
        SchemeCase{"WhoWaitsPaysAnyPrice", "isozone", Space(9, true), {Zone(1, 95)}, {1}},
        SchemeCase{"UpperLevelsWait", "isozone", Space(9), {Zone(1, 30, Level(0)), Zone(2, 30, Level(4))}, {2}},
        SchemeCase{"UnlessTheyHaveSurvivedBefore", "isozone", Space(9), {Zone(1, 30, Level(0, ZoneHeat::kC1C))}, {1}},
        SchemeCase{"UpperLevelsCountMore",
                   "isozone",
                   Space(0),
                   {Zone(1, 40, Level(0)), Zone(2, 45, Level(1)), Zone(3, 50, Level(2))},
                   {3, 2, 1}},
        SchemeCase{"CheapestFirst", "isozone", Space(0), {Zone(1, 80), Zone(2, 5), Zone(3, 40)}, {2, 3, 1}},
        SchemeCase{"EnoughToReachTheStart",
                   "isozone",
                   Space(8),
                   {Zone(1, 10, Level(3)), Zone(2, 11, Level(3)), Zone(3, 12, Level(3)), Zone(4, 13, Level(3))},
                   {1, 2, 3}},
        SchemeCase{"OfOtherDataTheOldestFirst",
                   "isozone",
                   Space(0),
                   {Aged(Zone(1, 80), 10), Aged(Zone(2, 80), 1000), Aged(Zone(3, 70), 10), Aged(Zone(4, 85), 9000)},
                   {4, 2, 3, 1}},
        SchemeCase{"AgeIsNoReasonToCopyWhatIsWhole",
                   "isozone",
                   Space(0),
                   {Aged(Zone(1, 10), 1), Aged(Zone(2, 99), 1'000'000'000)},
                   {1, 2}},
        SchemeCase{
            "NoneIsSoYoungThatItsDeadStay", "isozone", Space(9), {Aged(Zone(1, 0), 0), Aged(Zone(2, 5), 99)}, {1}},
        SchemeCase{"AgeSaysNothingOfTables",
                   "isozone",
                   Space(0),
                   {Aged(Zone(1, 80, Level(3)), 9000), Aged(Zone(2, 70, Level(3)), 1),
                    Aged(Zone(3, 75, Lifetime::kExtreme), 5)},
                   {2, 3, 1}},
        SchemeCase{"MiddlingAgeCountsLikeADeepLevel",
                   "isozone",
                   Space(0),
                   {Aged(Zone(1, 50), 100), Aged(Zone(2, 50), 300), Zone(3, 50, Level(3)), Zone(4, 51, Level(3))},
                   {2, 3, 4, 1}},
        SchemeCase{"ZonesWithRoomToo", "isozone", Space(0), {NotFull(Zone(1, 1))}, {1}},
        SchemeCase{"StartIsTunable", "isozone", Space(29), {Zone(1, 1)}, {1}, 30}),
    CaseName);

// The first percentage of free space, from 100 down, below which the scheme is due.
uint32_t StartOf(const GcScheme& scheme, GcSpace space) {
  for (uint32_t free = 100; free > 0; --free) {
    space.free = (free - 1) * kCapacity;
    if (scheme.Due(space)) return free;
  }
  return 0;
}

TEST(GcScheme, IsozoneStartsBeforeTheNextFallCouldTakeAllThatIsFree) {
  const auto scheme = Scheme("isozone");
  GcSpace space = Space(0);
  EXPECT_EQ(StartOf(*scheme, space), 10U) << "the falls are not known";
  space.swing = 2 * kCapacity;
  EXPECT_EQ(StartOf(*scheme, space), 4U);
  EXPECT_DOUBLE_EQ(scheme->ThrottleBelow(space), 6);
  space.leased = 7;
  EXPECT_EQ(StartOf(*scheme, space), 7U) << "the next zones of who writes";
  space.swing = 30 * kCapacity;
  EXPECT_EQ(StartOf(*scheme, space), 10U) << "never earlier";
  space.swing = 0;
  space.leased = 0;
  EXPECT_EQ(StartOf(*scheme, space), 1U) << "one zone";
  space.free = 0;
  EXPECT_EQ(scheme->Urgency(space), 1);
  space.free = 100 * kCapacity;
  EXPECT_GT(scheme->Urgency(space), 0);
  space.wanted = true;
  EXPECT_TRUE(scheme->Due(space));
}

TEST(GcScheme, IsozoneStartsWhereItIsTold) {
  const auto scheme = Scheme("isozone", 30);
  GcSpace space = Space(0);
  space.swing = kCapacity;
  EXPECT_EQ(StartOf(*scheme, space), 30U);
  EXPECT_DOUBLE_EQ(scheme->ThrottleBelow(space), 45);
}

TEST(GcScheme, UrgencyOfIsozoneGrowsAsSpaceRunsOut) {
  const auto scheme = Scheme("isozone", 40);
  double before = 0;
  for (uint32_t free = 39; free > 10; --free) {
    const double urgency = scheme->Urgency(Space(free));
    EXPECT_GE(urgency, before) << free;
    EXPECT_LT(urgency, 1) << free;
    EXPECT_GT(urgency, 0) << free;
    before = urgency;
  }
  EXPECT_DOUBLE_EQ(scheme->Urgency(Space(25)), 0.5);
  for (const uint32_t free : {10U, 5U, 0U}) EXPECT_EQ(scheme->Urgency(Space(free)), 1) << free;
  EXPECT_EQ(scheme->Urgency(Space(39, /*wanted=*/true)), 1);
}

TEST(GcScheme, WhoIsPacedByTheCollectorAloneEndsItsRestsButPaysNoPrice) {
  const auto scheme = Scheme("isozone");
  GcSpace space = Space(9);
  space.paced = true;
  EXPECT_EQ(scheme->Urgency(space), 1);
  EXPECT_THAT(Victims(*scheme, space, {Zone(1, 95), Zone(2, 1)}), ElementsAre(2));
  space = Space(10);
  space.paced = true;
  EXPECT_FALSE(scheme->Due(space));
}

TEST(GcScheme, OnlyZenfsIsConfinedAndLetsItsWritersFail) {
  for (const char* name : {"none", "full", "zenfs+", "lifetime", "lifetime-one-victim", "lsm-zgc", "isozone"}) {
    EXPECT_TRUE(Scheme(name)->writers_wait()) << name;
    EXPECT_FALSE(Scheme(name)->confined()) << name;
  }
  EXPECT_FALSE(Scheme("zenfs")->writers_wait());
  EXPECT_TRUE(Scheme("zenfs")->confined());
}

TEST(GcScheme, DecidesAgainWhereItCollectsWhatIsMissing) {
  for (const char* name : {"full", "zenfs+", "lsm-zgc", "isozone"}) EXPECT_TRUE(Scheme(name)->decides_again()) << name;
  for (const char* name : {"none", "zenfs", "lifetime"}) EXPECT_FALSE(Scheme(name)->decides_again()) << name;
}

TEST(GcScheme, TheOthersKnowNoRest) {
  for (const char* name : {"zenfs", "full", "zenfs+", "lifetime", "lsm-zgc"}) {
    EXPECT_EQ(Scheme(name)->Urgency(Space(1)), 1) << name;
  }
}

TEST(GcScheme, OnlyFullLeavesDeadZonesAlone) {
  for (const char* name : {"none", "zenfs", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    EXPECT_TRUE(Scheme(name)->resets_at_once()) << name;
  }
  EXPECT_FALSE(Scheme("full")->resets_at_once());
}

TEST(GcScheme, IsDueWhereItMayDecide) {
  const auto due = [](std::string_view scheme, const GcSpace& space) { return Scheme(scheme)->Due(space); };
  EXPECT_FALSE(due("none", Space(0, true)));
  EXPECT_TRUE(due("zenfs", Space(20)));
  EXPECT_FALSE(due("zenfs", Space(21)));
  for (const char* name : {"full", "zenfs+", "lsm-zgc", "isozone"}) {
    EXPECT_TRUE(due(name, Space(9))) << name;
    EXPECT_FALSE(due(name, Space(10))) << name;
  }
  EXPECT_TRUE(due("isozone", Space(90, true)));
  EXPECT_TRUE(due("lifetime", Space(24)));
  EXPECT_FALSE(due("lifetime", Space(25)));
}

TEST(GcScheme, LooksAsOftenAsItsPaperSays) {
  constexpr int64_t kMs = 1'000'000;
  EXPECT_EQ(Scheme("zenfs")->interval_ns(), 10'000 * kMs);
  EXPECT_EQ(Scheme("zenfs+")->interval_ns(), 100 * kMs);  // "when the available space is below a threshold"
  EXPECT_EQ(Scheme("full")->interval_ns(), 100 * kMs);
  EXPECT_EQ(Scheme("lifetime")->interval_ns(), 1'000 * kMs);
  EXPECT_LE(Scheme("isozone")->interval_ns(), 1'000 * kMs);
}

TEST(GcScheme, OnlyLsmZgcReadsSegments) {
  for (const char* name : {"none", "zenfs", "full", "zenfs+", "lifetime", "isozone"}) {
    EXPECT_FALSE(Scheme(name)->reads_segments()) << name;
  }
  EXPECT_TRUE(Scheme("lsm-zgc")->reads_segments());
}

TEST(GcScheme, SurvivorsGoWhereTheSchemeSays) {
  using enum ZoneHeat;
  for (const ZoneHeat heat : {kC0, kC1C, kC1H, kC2}) {
    for (const char* name : {"zenfs", "full", "zenfs+", "lifetime"}) {
      EXPECT_EQ(Scheme(name)->Survivor(heat, true), heat) << name;
      EXPECT_EQ(Scheme(name)->Survivor(heat, false), heat) << name;
    }
    const ZoneHeat cold = heat == kC0 ? kC1C : kC2;
    EXPECT_EQ(Scheme("lsm-zgc")->Survivor(heat, true), cold);
    EXPECT_EQ(Scheme("lsm-zgc")->Survivor(heat, false), heat == kC0 ? kC1H : kC2);
    EXPECT_EQ(Scheme("isozone")->Survivor(heat, true), cold);
    EXPECT_EQ(Scheme("isozone")->Survivor(heat, false), cold);
  }
}

TEST(GcScheme, WhoAsksGetsAllInTheSchemesOrder) {
  const std::vector<GcCandidate> candidates = {Zone(1, 90, Level(0)), Zone(2, 60, Level(1)), Zone(3, 80, Level(2))};
  EXPECT_THAT(Ids(Scheme("none")->Order(candidates)), ElementsAre(2, 3, 1));
  EXPECT_THAT(Ids(Scheme("zenfs")->Order(candidates)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(Scheme("full")->Order(candidates)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(Scheme("zenfs+")->Order(candidates)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(Scheme("lifetime")->Order(candidates)), ElementsAre(2, 3, 1));
  EXPECT_THAT(Ids(Scheme("lsm-zgc")->Order(candidates)), ElementsAre(2, 3, 1));
  EXPECT_THAT(Ids(Scheme("isozone")->Order(candidates)), ElementsAre(2, 3, 1));
}

TEST(GcScheme, NoCandidateNoVictim) {
  for (const char* name : {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    EXPECT_THAT(Victims(*Scheme(name), Space(0, true), {}), IsEmpty()) << name;
    EXPECT_THAT(Victims(*Scheme(name), GcSpace{}, {}), IsEmpty()) << name;
  }
}

TEST(GcScheme, EveryNameCanBeMade) {
  EXPECT_EQ(GcSchemeNames().size(), 8U);
  for (const std::string_view name : GcSchemeNames()) EXPECT_TRUE(MakeGcScheme(name, {}).ok()) << name;
}

TEST(GcScheme, UnknownNameIsAnsweredWithTheKnownOnes) {
  const auto scheme = MakeGcScheme("lsm_zgc", {});
  ASSERT_TRUE(scheme.status().Is(StatusCode::kInvalidArgument));
  for (const char* name : {"lsm_zgc", "none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    EXPECT_THAT(std::string(scheme.status().message()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace isozone
