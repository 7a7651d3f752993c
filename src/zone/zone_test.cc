#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"
#include "testing/test_seed.h"
#include "zone/allocator/active_budget.h"
#include "zone/placement_policy.h"
#include "zone/zone_set.h"
#include "zone/zone_table.h"

namespace isozone {
namespace {

constexpr uint64_t kCapacity = 64 * kKiB;
constexpr uint64_t kBlock = 4 * kKiB;

std::vector<ZoneDescriptor> EmptyZones(uint32_t count) {
  std::vector<ZoneDescriptor> report(count);
  for (uint32_t i = 0; i < count; ++i) report[i] = {ZoneId(i), ZoneState::kEmpty, kCapacity, 0};
  return report;
}

// --- ZoneSet ---

TEST(ZoneSet, FindsTheLowestMemberFromAnyZoneOn) {
  ZoneSet set(300'000);
  EXPECT_EQ(set.First(), std::nullopt);
  for (const uint32_t id : {0U, 63U, 64U, 4095U, 4096U, 262'143U, 262'144U, 299'999U}) set.Insert(ZoneId(id));
  EXPECT_EQ(set.size(), 8U);
  EXPECT_EQ(set.First(), ZoneId(0));
  EXPECT_EQ(set.FirstFrom(ZoneId(1)), ZoneId(63));
  EXPECT_EQ(set.FirstFrom(ZoneId(65)), ZoneId(4095));
  EXPECT_EQ(set.FirstFrom(ZoneId(4097)), ZoneId(262'143));
  EXPECT_EQ(set.FirstFrom(ZoneId(262'145)), ZoneId(299'999));
  EXPECT_EQ(set.FirstFrom(ZoneId(300'000)), std::nullopt);
  set.Erase(ZoneId(299'999));
  EXPECT_EQ(set.FirstFrom(ZoneId(262'145)), std::nullopt);
  EXPECT_FALSE(set.Contains(ZoneId(299'999)));
}

// --- ZoneTable ---

TEST(ZoneTable, AdoptsWhatTheDeviceReports) {
  std::vector<ZoneDescriptor> report = EmptyZones(6);
  report[1] = {ZoneId(1), ZoneState::kClosed, kCapacity, kBlock};
  report[2] = {ZoneId(2), ZoneState::kFull, kCapacity, kCapacity};
  report[3] = {ZoneId(3), ZoneState::kReadOnly, kCapacity, 2 * kBlock};
  report[4] = {ZoneId(4), ZoneState::kOffline, kCapacity, 0};
  const ZoneTable table(report);
  EXPECT_EQ(table.empty().size(), 2U);
  EXPECT_EQ(table.dead().size(), 2U);  // 1 and 2: nothing lives in them
  EXPECT_EQ(table.at(ZoneId(3)).phase, ZonePhase::kRetired);
  EXPECT_EQ(table.totals().unusable, 2U);
  EXPECT_EQ(table.totals().capacity, 5 * kCapacity);
  EXPECT_EQ(table.totals().dead, kBlock + kCapacity + 2 * kBlock);
  EXPECT_EQ(table.totals().free, 2 * kCapacity + kCapacity - kBlock);
}

TEST(ZoneTable, ZoneGoesRound) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  table.Lease(zone, ZoneUse::kData, Lifetime::kLong);
  EXPECT_TRUE(table.empty().empty());
  table.AddLive(zone, kBlock);
  table.Advance(zone, kBlock);
  table.EndLease(zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kShort, kBlock), std::nullopt);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kLog, Lifetime::kLong, kBlock), std::nullopt);
  table.Lease(zone, ZoneUse::kData, Lifetime::kShort);
  EXPECT_EQ(table.at(zone).lifetime, Lifetime::kLong);
  table.EndLease(zone);
  table.BeginFinish(zone);
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  table.EndFinish(zone);
  EXPECT_EQ(table.totals().full, 1U);
  table.RemoveLive(zone, kBlock);
  EXPECT_EQ(table.dead().First(), zone);
  table.BeginReset(zone);
  EXPECT_TRUE(table.dead().empty());
  table.EndReset(zone);
  EXPECT_EQ(table.empty().First(), zone);
  EXPECT_EQ(table.at(zone).use, ZoneUse::kFree);
}

TEST(ZoneTable, ADeadZoneIsGoneOnWithWhereThatIsWorthIt) {
  ZoneTable table(EmptyZones(3));
  const auto write = [&table](uint32_t zone, ZoneUse use, uint64_t bytes) {
    table.Lease(ZoneId(zone), use, Lifetime::kLong);
    table.Advance(ZoneId(zone), bytes);
    table.EndLease(ZoneId(zone));
    return ZoneId(zone);
  };
  const ZoneId log = write(0, ZoneUse::kLog, kCapacity - kBlock);
  const ZoneId little = write(1, ZoneUse::kData, RoundDown(kCapacity / 4, kBlock));
  const ZoneId much = write(2, ZoneUse::kData, kCapacity - kBlock);
  EXPECT_EQ(table.dead().size(), 3U);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kLog, Lifetime::kLong, kBlock), log);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), little);
  EXPECT_FALSE(table.at(much).reusable());
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt) << "it is reset rather than finished";
  table.Lease(little, ZoneUse::kData, Lifetime::kShort);
  EXPECT_EQ(table.at(little).lifetime, Lifetime::kShort);
  EXPECT_EQ(table.dead().size(), 2U);
}

TEST(ZoneTable, MetadataDiesOnlyWhenReleased) {
  ZoneTable table(EmptyZones(2));
  table.KeepForMetadata(ZoneId(0));
  EXPECT_EQ(table.empty().First(), ZoneId(1));
  for (const ZoneId zone : {ZoneId(0), ZoneId(1)}) {
    table.Lease(zone, ZoneUse::kMetadata, Lifetime::kNotSet);
    table.Advance(zone, kBlock);
    table.EndLease(zone);
  }
  EXPECT_TRUE(table.dead().empty());
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  for (const ZoneId zone : {ZoneId(0), ZoneId(1)}) {
    table.Release(zone);
    table.BeginReset(zone);
    table.EndReset(zone);
  }
  EXPECT_EQ(table.empty().size(), 1U);
  EXPECT_EQ(table.empty().First(), ZoneId(1));
  EXPECT_EQ(table.at(ZoneId(0)).use, ZoneUse::kMetadata);
}

TEST(ZoneTable, ReleasedMetadataThatWasNeverWrittenIsFreeAtOnce) {
  ZoneTable table(EmptyZones(2));
  table.SetUse(ZoneId(0), ZoneUse::kMetadata);  // set aside
  table.Release(ZoneId(0));
  EXPECT_EQ(table.empty().First(), ZoneId(0));
  table.Lease(ZoneId(1), ZoneUse::kMetadata, Lifetime::kNotSet);
  table.Release(ZoneId(1));
  table.EndLease(ZoneId(1));
  EXPECT_EQ(table.empty().size(), 2U);
  EXPECT_FALSE(table.at(ZoneId(1)).released);
}

TEST(ZoneTable, AnIdleZoneKeepsItsClassWhoeverGoesOnInIt) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  const DataClass first(Lifetime::kLong, 3, ZoneHeat::kC1C);
  table.Lease(zone, ZoneUse::kData, first);
  table.AddLive(zone, kBlock);
  table.Advance(zone, kBlock);
  table.EndLease(zone);
  table.Lease(zone, ZoneUse::kData, {Lifetime::kShort, 0, ZoneHeat::kC0});
  EXPECT_EQ(table.at(zone).data_class(), first);
  table.EndLease(zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock, ZoneHeat::kC1C), zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock, ZoneHeat::kC0), std::nullopt);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kShort, kBlock), std::nullopt);
  // Once it was reset, any writer may have it.
  table.RemoveLive(zone, kBlock);
  table.BeginReset(zone);
  table.EndReset(zone);
  EXPECT_EQ(table.at(zone).data_class(), DataClass());
}

TEST(ZoneTable, NobodyGoesOnInAVictimNorResetsItWhileItIsHeld) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  table.Lease(zone, ZoneUse::kData, Lifetime::kLong);
  table.AddLive(zone, kBlock);
  table.Advance(zone, 2 * kBlock);
  table.EndLease(zone);
  table.SetVictim(zone, true);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), std::nullopt);
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  table.SetVictim(zone, false);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), zone);
  // Data that dies while the collector reads it is reset only afterwards. Otherwise new data there could be taken for
  // it.
  table.SetVictim(zone, true);
  table.RemoveLive(zone, kBlock);
  EXPECT_TRUE(table.dead().empty());
  table.SetVictim(zone, false);
  EXPECT_EQ(table.dead().First(), zone);
}

// Computes what ZoneTable keeps in indexes by looking at every zone.
class NaiveView {
 public:
  explicit NaiveView(const ZoneTable& table) : table_(table) {}

  std::vector<ZoneId> Where(auto predicate) const {
    std::vector<ZoneId> found;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (predicate(table_.at(ZoneId(i)))) found.emplace_back(i);
    }
    return found;
  }
  std::optional<ZoneId> Fullest(auto predicate) const {
    std::optional<ZoneId> best;
    for (const ZoneId zone : Where(predicate)) {
      if (!best || table_.at(zone).room() < table_.at(*best).room()) best = zone;
    }
    return best;
  }
  static bool Reusable(const ZoneRecord& z, ZoneUse use) {
    const bool worth_it = z.live > 0 || use == ZoneUse::kLog || z.write_pointer <= z.capacity / 4;
    return z.phase == ZonePhase::kIdle && z.use == use && !z.victim && !z.released && worth_it;
  }
  ZoneTotals Totals() const {
    ZoneTotals sum;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      const ZoneRecord& z = table_.at(ZoneId(i));
      sum.full += z.phase == ZonePhase::kFull;
      sum.resetting += z.phase == ZonePhase::kResetting;
      sum.finishing += z.phase == ZonePhase::kFinishing;
      sum.unusable += z.phase == ZonePhase::kRetired || z.phase == ZonePhase::kOffline;
      sum.released += z.released && z.dead();
      if ((Reusable(z, ZoneUse::kData) || Reusable(z, ZoneUse::kLog)) && z.dead()) {
        ++sum.dead_idle;
        sum.dead_in_idle += z.write_pointer;
      }
      const bool usable = z.phase != ZonePhase::kRetired && z.phase != ZonePhase::kOffline;
      sum.kept += z.kept && usable;
      sum.lent += !z.kept && z.use == ZoneUse::kMetadata && usable && !z.released;
      if (z.phase == ZonePhase::kOffline) continue;
      sum.capacity += z.capacity;
      if (z.use == ZoneUse::kMetadata) {
        sum.metadata += z.capacity;
        continue;
      }
      sum.live += z.live;
      if (z.write_pointer > z.live) sum.dead += z.write_pointer - z.live;
      if (z.phase == ZonePhase::kEmpty || z.phase == ZonePhase::kLeased || z.phase == ZonePhase::kIdle) {
        sum.free += z.room();
      }
    }
    return sum;
  }

 private:
  const ZoneTable& table_;
};

std::vector<ZoneId> Members(const ZoneSet& set) {
  std::vector<ZoneId> members;
  for (auto zone = set.First(); zone; zone = set.FirstFrom(ZoneId(zone->value() + 1))) members.push_back(*zone);
  return members;
}

void ExpectConsistent(const ZoneTable& table) {
  const NaiveView naive(table);
  ASSERT_EQ(Members(table.empty()),
            naive.Where([](const ZoneRecord& z) { return z.phase == ZonePhase::kEmpty && z.use == ZoneUse::kFree; }));
  ASSERT_EQ(Members(table.dead()), naive.Where([](const ZoneRecord& z) { return z.dead(); }));
  ASSERT_EQ(table.empty().size(), Members(table.empty()).size());
  ASSERT_EQ(table.totals(), naive.Totals());
  for (const ZoneUse use : {ZoneUse::kData, ZoneUse::kLog}) {
    const auto fullest = table.FullestIdle(use);
    ASSERT_EQ(fullest, naive.Fullest([&](const ZoneRecord& z) { return NaiveView::Reusable(z, use) && z.live > 0; }));
    for (int lifetime = 0; lifetime < kLifetimeCount; ++lifetime) {
      for (int heat = 0; heat < kZoneHeatCount; ++heat) {
        for (const uint64_t min_room : {kBlock, kCapacity / 2}) {
          const DataClass data(static_cast<Lifetime>(lifetime), DataClass::kNoLevel, static_cast<ZoneHeat>(heat));
          ASSERT_EQ(table.IdleWithRoom(use, data.lifetime, min_room, data.heat),
                    naive.Fullest([&](const ZoneRecord& z) {
                      return NaiveView::Reusable(z, use) && z.lifetime == data.lifetime && z.heat == data.heat &&
                             z.room() >= min_room;
                    }));
        }
      }
    }
  }
}

// Makes one random change that is allowed in the zone's phase.
void ChangeSomething(ZoneTable& table, Random& random) {
  constexpr ZoneUse kUses[] = {ZoneUse::kData, ZoneUse::kLog, ZoneUse::kMetadata};
  const ZoneId id(static_cast<uint32_t>(random.Below(table.size())));
  const ZoneRecord& zone = table.at(id);
  if (random.Chance(0.002)) return table.Retire(id, random.Chance(0.5));
  if (random.Chance(0.3) && zone.live > 0) return table.RemoveLive(id, random.Between(1, zone.live));
  if (random.Chance(0.2) && zone.use == ZoneUse::kMetadata && zone.phase != ZonePhase::kEmpty) return table.Release(id);
  const bool at_rest =
      zone.phase == ZonePhase::kIdle || zone.phase == ZonePhase::kFull || zone.phase == ZonePhase::kFailed;
  if (at_rest && random.Chance(0.2)) return table.SetVictim(id, !zone.victim);
  switch (zone.phase) {
    case ZonePhase::kEmpty:
      return table.Lease(id, kUses[random.Below(3)],
                         {static_cast<Lifetime>(random.Below(kLifetimeCount)), static_cast<int8_t>(random.Below(3)),
                          static_cast<ZoneHeat>(random.Below(kZoneHeatCount))});
    case ZonePhase::kLeased:
      if (random.Chance(0.05)) return table.Fail(id, zone.write_pointer);
      if (random.Chance(0.3) || zone.room() == 0) return table.EndLease(id);
      if (zone.use != ZoneUse::kMetadata && zone.live + kBlock <= zone.capacity)
        table.AddLive(id, random.Between(1, kBlock));
      return table.Advance(id, kBlock * random.Between(1, zone.room() / kBlock));
    case ZonePhase::kIdle:
      if (zone.dead() && (!zone.reusable() || random.Chance(0.5))) return table.BeginReset(id);
      if (zone.victim) return;
      if (random.Chance(0.3)) return table.BeginFinish(id);
      return table.Lease(id, zone.use, zone.data_class());
    case ZonePhase::kFinishing:
      return table.EndFinish(id);
    case ZonePhase::kFull:
    case ZonePhase::kFailed:
      if (zone.dead()) table.BeginReset(id);
      return;
    case ZonePhase::kResetting:
      return table.EndReset(id);
    case ZonePhase::kRetired:
    case ZonePhase::kOffline:
      return;
  }
}

TEST(ZoneTable, IndexesAgreeWithALookAtEveryZone) {
  const uint64_t seed = TestSeed(20240607);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    ZoneTable table(EmptyZones(70));
    table.KeepForMetadata(ZoneId(0));
    for (int step = 0; step < 1'000; ++step) {
      ChangeSomething(table, random);
      ASSERT_NO_FATAL_FAILURE(ExpectConsistent(table)) << "round " << round << " step " << step;
    }
  }
}

// --- ActiveBudget ---

using Tokens = std::vector<ActiveBudget::Token>;

uint32_t TakeAll(ActiveBudget& budget, BudgetClass c, Tokens& tokens) {
  uint32_t taken = 0;
  while (auto token = budget.TryTake(c)) {
    tokens.push_back(std::move(*token));
    ++taken;
  }
  return taken;
}

TEST(ActiveBudget, DataNeverTakesAReserve) {
  ActiveBudget budget(14);
  Tokens tokens;
  EXPECT_EQ(TakeAll(budget, BudgetClass::kData, tokens), 7U);  // its own 2 and the rest of 5
  EXPECT_EQ(TakeAll(budget, BudgetClass::kGc, tokens), 1U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kLog, tokens), 2U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kMetadata, tokens), 4U);
  EXPECT_EQ(budget.used(), 14U);
}

TEST(ActiveBudget, EveryClassBorrowsFromTheRestOnly) {
  for (const BudgetClass c : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
    ActiveBudget budget(12);
    Tokens tokens;
    EXPECT_EQ(TakeAll(budget, c, tokens), ActiveBudget::ReserveOf(c) + 3);
    EXPECT_TRUE(budget.Borrows(c));
    for (const BudgetClass other : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
      EXPECT_EQ(budget.Available(other), other == c ? 0 : ActiveBudget::ReserveOf(other));
    }
  }
}

TEST(ActiveBudget, SmallestDeviceGivesEveryClassItsReserve) {
  ActiveBudget budget(ActiveBudget::kReserveTotal);
  Tokens tokens;
  for (const BudgetClass c : {BudgetClass::kData, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kMetadata}) {
    EXPECT_EQ(TakeAll(budget, c, tokens), ActiveBudget::ReserveOf(c));
    EXPECT_FALSE(budget.Borrows(c));
  }
}

TEST(ActiveBudget, TokenGoesBackOnceHoweverItIsMoved) {
  ActiveBudget budget(9);
  {
    auto first = budget.TryTake(BudgetClass::kLog);
    ActiveBudget::Token moved = std::move(*first);
    first.reset();
    EXPECT_EQ(budget.used(BudgetClass::kLog), 1U);
    std::optional<ActiveBudget::Token> second = budget.TryTake(BudgetClass::kLog);
    moved = std::move(*second);
    second.reset();
    EXPECT_EQ(budget.used(BudgetClass::kLog), 1U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ActiveBudget, AdoptedTokensMayExceedTheBudgetAndAreThenOwed) {
  ActiveBudget budget(10);
  Tokens tokens;
  for (int i = 0; i < 5; ++i) tokens.push_back(budget.Adopt(BudgetClass::kData));
  EXPECT_EQ(budget.Overcommitted(), 2U);
  EXPECT_EQ(budget.Available(BudgetClass::kData), 0U);
  EXPECT_EQ(budget.Available(BudgetClass::kMetadata), 4U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kMetadata, tokens), 4U);
  EXPECT_EQ(budget.Available(BudgetClass::kLog), 1U);  // the device has no more
}

TEST(ActiveBudget, NoLimitIsNoLimit) {
  ActiveBudget budget(0);
  Tokens tokens;
  for (int i = 0; i < 10'000; ++i) tokens.push_back(*budget.TryTake(BudgetClass::kData));
  EXPECT_GT(budget.Available(BudgetClass::kData), 1'000'000U);
  EXPECT_EQ(budget.Overcommitted(), 0U);
}

// --- Placement ---

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

Placement Use(uint32_t zone) { return {Placement::Action::kUseIdle, ZoneId(zone)}; }
Placement Open(uint32_t zone) { return {Placement::Action::kOpenEmpty, ZoneId(zone)}; }
Placement TokenOr(uint32_t zone) { return {Placement::Action::kNeedToken, ZoneId(zone)}; }
const Placement kToken = {Placement::Action::kNeedToken, {}};
const Placement kSpace = {Placement::Action::kNeedSpace, {}};

ZoneTable TableWith(const std::vector<IdleZone>& idle) {
  ZoneTable table(EmptyZones(static_cast<uint32_t>(idle.size()) + 2));
  for (uint32_t i = 0; i < idle.size(); ++i) {
    table.Lease(ZoneId(i), idle[i].use, {idle[i].lifetime, idle[i].level, idle[i].heat});
    table.AddLive(ZoneId(i), kBlock);
    table.Advance(ZoneId(i), idle[i].written * kBlock);
    table.EndLease(ZoneId(i));
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
    table_->Lease(ZoneId(zone), kD, data);
    table_->AddLive(ZoneId(zone), kBlock);
    table_->Advance(ZoneId(zone), blocks * kBlock);
    table_->EndLease(ZoneId(zone));
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

TEST(GroupIndex, MakesAPartitionOfEveryMeasurement) {
  EXPECT_EQ(GroupIndex(4, nullptr).count(), 1U);
  EXPECT_EQ(GroupIndex(4, nullptr).kind(), GroupIndex::Kind::kNotMeasured);
  const ZoneGroups independent;
  const GroupIndex turns(100, &independent);
  EXPECT_EQ(turns.count(), GroupIndex::kIndependentGroups);
  EXPECT_EQ(turns.of(ZoneId(65)), 1U);
  EXPECT_EQ(turns.kind(), GroupIndex::Kind::kIndependentZones);
  ZoneGroups groups;
  groups.group_of_zone = {1, ZoneGroups::kUnknown, 0, 1};
  groups.channel_of_group = {0, 0};
  const GroupIndex index(4, &groups);
  EXPECT_EQ(index.zone_bandwidth(), GroupIndex::kAssumedBandwidth);
  groups.zone_bandwidth = 7 * kMiB;
  EXPECT_EQ(GroupIndex(4, &groups).zone_bandwidth(), 7 * kMiB);
  EXPECT_EQ(GroupIndex(4, &groups).zone_width(), 1U);
  EXPECT_EQ(index.kind(), GroupIndex::Kind::kMeasured);
  EXPECT_EQ(index.count(), 3U);
  EXPECT_EQ(index.of(ZoneId(1)), 2U);
  EXPECT_EQ(index.first_rank(1), 1U);
  EXPECT_EQ(index.at_rank(1), ZoneId(0));
  EXPECT_EQ(index.at_rank(2), ZoneId(3));
  EXPECT_EQ(index.rank(ZoneId(3)), 2U);
  EXPECT_EQ(index.first_rank(3), 4U);
}

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
