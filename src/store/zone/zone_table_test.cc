#include "store/zone/zone_table.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "store/zone/zone_set.h"
#include "store/zone/zone_table_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

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
  table.Edit(zone)->Lease(ZoneUse::kData, Lifetime::kLong);
  EXPECT_TRUE(table.empty().empty());
  table.Edit(zone)->AddLive(kBlock);
  table.Edit(zone)->Advance(kBlock);
  table.Edit(zone)->EndLease();
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kShort, kBlock), std::nullopt);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kLog, Lifetime::kLong, kBlock), std::nullopt);
  table.Edit(zone)->Lease(ZoneUse::kData, Lifetime::kShort);
  EXPECT_EQ(table.at(zone).data.lifetime, Lifetime::kLong);
  table.Edit(zone)->EndLease();
  table.Edit(zone)->BeginFinish();
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  table.Edit(zone)->EndFinish();
  EXPECT_EQ(table.totals().full, 1U);
  table.Edit(zone)->RemoveLive(kBlock);
  EXPECT_EQ(table.dead().First(), zone);
  table.Edit(zone)->BeginReset();
  EXPECT_TRUE(table.dead().empty());
  table.Edit(zone)->EndReset();
  EXPECT_EQ(table.empty().First(), zone);
  EXPECT_EQ(table.at(zone).use, ZoneUse::kFree);
}

TEST(ZoneTable, ADeadZoneIsGoneOnWithWhereThatIsWorthIt) {
  ZoneTable table(EmptyZones(4));
  const auto write = [&table](uint32_t zone, ZoneUse use, uint64_t bytes) {
    table.Edit(ZoneId(zone))->Lease(use, Lifetime::kLong);
    table.Edit(ZoneId(zone))->Advance(bytes);
    table.Edit(ZoneId(zone))->EndLease();
    return ZoneId(zone);
  };
  const ZoneId log = write(0, ZoneUse::kLog, RoundDown(kCapacity / 8 * 7, kBlock));
  const ZoneId little = write(1, ZoneUse::kData, RoundDown(kCapacity / 4, kBlock));
  const ZoneId much = write(2, ZoneUse::kData, kCapacity - kBlock);
  const ZoneId full_of_logs = write(3, ZoneUse::kLog, RoundDown(kCapacity / 8 * 7, kBlock) + kBlock);
  EXPECT_EQ(table.dead().size(), 4U);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kLog, Lifetime::kLong, kBlock), log);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), little);
  EXPECT_FALSE(table.at(much).reusable());
  EXPECT_FALSE(table.at(full_of_logs).reusable()) << "not every frame of a log fits";
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt) << "it is reset rather than finished";
  table.Edit(little)->Lease(ZoneUse::kData, Lifetime::kShort);
  EXPECT_EQ(table.at(little).data.lifetime, Lifetime::kShort);
  EXPECT_EQ(table.dead().size(), 3U);
}

TEST(ZoneTable, APinnedZoneIsWrittenFurtherAndNotReset) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  table.Edit(zone)->Lease(ZoneUse::kData, Lifetime::kShort, {7, true});
  table.Edit(zone)->Advance(table.at(zone).capacity / 2);
  table.Edit(zone)->EndLease();
  EXPECT_FALSE(table.at(zone).reusable()) << "it is reset rather than finished";
  table.Edit(zone)->BeginReset();
  table.Edit(zone)->pinned = true;
  table.Edit(zone)->Cancel();
  EXPECT_TRUE(table.dead().empty());
  EXPECT_EQ(table.pinned().First(), zone);
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), zone) << "it is finished where active zones run short";
  table.Edit(zone)->Lease(ZoneUse::kData, Lifetime::kLong);
  EXPECT_TRUE(table.pinned().empty());
  EXPECT_EQ(table.at(zone).data.lifetime, Lifetime::kLong);
  EXPECT_TRUE(table.at(zone).cohort.none());
  table.Edit(zone)->EndLease();
  EXPECT_EQ(table.dead().First(), zone) << "readers are asked again";
}

TEST(ZoneTable, MetadataDiesOnlyWhenReleased) {
  ZoneTable table(EmptyZones(2));
  table.Edit(ZoneId(0))->KeepForMetadata();
  EXPECT_EQ(table.empty().First(), ZoneId(1));
  for (const ZoneId zone : {ZoneId(0), ZoneId(1)}) {
    table.Edit(zone)->Lease(ZoneUse::kMetadata, Lifetime::kNotSet);
    table.Edit(zone)->Advance(kBlock);
    table.Edit(zone)->EndLease();
  }
  EXPECT_TRUE(table.dead().empty());
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  for (const ZoneId zone : {ZoneId(0), ZoneId(1)}) {
    table.Edit(zone)->Release();
    table.Edit(zone)->BeginReset();
    table.Edit(zone)->EndReset();
  }
  EXPECT_EQ(table.empty().size(), 1U);
  EXPECT_EQ(table.empty().First(), ZoneId(1));
  EXPECT_EQ(table.at(ZoneId(0)).use, ZoneUse::kMetadata);
}

TEST(ZoneTable, ReleasedMetadataThatWasNeverWrittenIsFreeAtOnce) {
  ZoneTable table(EmptyZones(2));
  table.Edit(ZoneId(0))->use = ZoneUse::kMetadata;  // reserved
  table.Edit(ZoneId(0))->Release();
  EXPECT_EQ(table.empty().First(), ZoneId(0));
  table.Edit(ZoneId(1))->Lease(ZoneUse::kMetadata, Lifetime::kNotSet);
  table.Edit(ZoneId(1))->Release();
  table.Edit(ZoneId(1))->EndLease();
  EXPECT_EQ(table.empty().size(), 2U);
  EXPECT_FALSE(table.at(ZoneId(1)).released);
}

TEST(ZoneTable, AnIdleZoneKeepsItsClassWhoeverGoesOnInIt) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  const DataClass first(Lifetime::kLong, 3, ZoneHeat::kC1C);
  table.Edit(zone)->Lease(ZoneUse::kData, first);
  table.Edit(zone)->AddLive(kBlock);
  table.Edit(zone)->Advance(kBlock);
  table.Edit(zone)->EndLease();
  table.Edit(zone)->Lease(ZoneUse::kData, {Lifetime::kShort, 0, ZoneHeat::kC0});
  EXPECT_EQ(table.at(zone).data, first);
  table.Edit(zone)->EndLease();
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock, ZoneHeat::kC1C), zone);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock, ZoneHeat::kC0), std::nullopt);
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kShort, kBlock), std::nullopt);
  // Once it was reset, any writer may have it.
  table.Edit(zone)->RemoveLive(kBlock);
  table.Edit(zone)->BeginReset();
  table.Edit(zone)->EndReset();
  EXPECT_EQ(table.at(zone).data, DataClass());
}

TEST(ZoneTable, NobodyGoesOnInAVictimNorResetsItWhileItIsHeld) {
  ZoneTable table(EmptyZones(1));
  const ZoneId zone(0);
  table.Edit(zone)->Lease(ZoneUse::kData, Lifetime::kLong);
  table.Edit(zone)->AddLive(kBlock);
  table.Edit(zone)->Advance(2 * kBlock);
  table.Edit(zone)->EndLease();
  table.Edit(zone)->victim = true;
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), std::nullopt);
  EXPECT_EQ(table.FullestIdle(ZoneUse::kData), std::nullopt);
  table.Edit(zone)->victim = false;
  EXPECT_EQ(table.IdleWithRoom(ZoneUse::kData, Lifetime::kLong, kBlock), zone);
  // Data that dies while the collector reads it is reset only afterwards. Otherwise new data there could be taken for
  // it.
  table.Edit(zone)->victim = true;
  table.Edit(zone)->RemoveLive(kBlock);
  EXPECT_TRUE(table.dead().empty());
  table.Edit(zone)->victim = false;
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
    const bool fits_any_frame = use == ZoneUse::kLog && z.room() >= z.capacity / 8;
    const bool worth_it = z.live > 0 || z.pinned || fits_any_frame || z.write_pointer <= z.capacity / 4;
    return z.phase == ZonePhase::kIdle && z.use == use && !z.victim && !z.released && worth_it;
  }
  ZoneTotals Totals() const {
    ZoneTotals sum;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      const ZoneRecord& z = table_.at(ZoneId(i));
      sum.full += z.phase == ZonePhase::kFull;
      sum.resetting += z.phase == ZonePhase::kResetting;
      sum.being_reset += z.phase == ZonePhase::kResetting && z.at_device;
      sum.finishing += z.phase == ZonePhase::kFinishing;
      sum.unusable += z.phase == ZonePhase::kRetired || z.phase == ZonePhase::kOffline;
      sum.released += z.released && z.dead();
      if ((Reusable(z, ZoneUse::kData) || Reusable(z, ZoneUse::kLog)) && z.dead()) {
        ++sum.dead_idle;
        sum.dead_in_idle += z.write_pointer;
      }
      const bool usable = z.phase != ZonePhase::kRetired && z.phase != ZonePhase::kOffline;
      sum.kept += z.kept && usable;
      sum.held_elsewhere += !z.kept && z.use == ZoneUse::kMetadata && usable && !z.released;
      if (z.phase == ZonePhase::kOffline) continue;
      sum.capacity += z.capacity;
      if (z.use == ZoneUse::kMetadata) {
        sum.metadata += z.capacity;
        continue;
      }
      sum.live += z.live;
      if (z.write_pointer > z.live) sum.dead += z.write_pointer - z.live;
      if (z.pinned) sum.pinned += z.write_pointer;
      if (z.phase == ZonePhase::kEmpty || z.phase == ZonePhase::kLeased || z.phase == ZonePhase::kIdle) {
        sum.free += z.room();
        const bool may_be_reset = z.dead() && Reusable(z, ZoneUse::kLog);
        if (z.use == ZoneUse::kLog && !may_be_reset) sum.free_in_logs += z.room();
      }
    }
    return sum;
  }
  uint64_t LiveOf(const DataClass& data) const {
    uint64_t live = 0;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      const ZoneRecord& z = table_.at(ZoneId(i));
      const bool of_files = z.phase != ZonePhase::kOffline && z.use != ZoneUse::kMetadata;
      if (of_files && z.data.lifetime == data.lifetime && z.data.level == data.level) live += z.live;
    }
    return live;
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
  ASSERT_EQ(table.pinned().All(), naive.Where([](const ZoneRecord& z) { return z.pinned; }));
  ASSERT_EQ(table.empty().size(), Members(table.empty()).size());
  ASSERT_EQ(table.totals(), naive.Totals());
  for (const ZoneUse use : {ZoneUse::kData, ZoneUse::kLog}) {
    const auto fullest = table.FullestIdle(use);
    ASSERT_EQ(fullest, naive.Fullest([&](const ZoneRecord& z) {
      return NaiveView::Reusable(z, use) && (z.live > 0 || z.pinned);
    }));
    for (int lifetime = 0; lifetime < kLifetimeCount; ++lifetime) {
      for (const int8_t level : {DataClass::kNoLevel, int8_t{0}, int8_t{3}}) {
        const DataClass data(static_cast<Lifetime>(lifetime), level);
        ASSERT_EQ(table.LiveOf(data), naive.LiveOf(data));
      }
      for (int heat = 0; heat < kZoneHeatCount; ++heat) {
        for (const uint64_t min_room : {kBlock, kCapacity / 2}) {
          const DataClass data(static_cast<Lifetime>(lifetime), DataClass::kNoLevel, static_cast<ZoneHeat>(heat));
          ASSERT_EQ(table.IdleWithRoom(use, data.lifetime, min_room, data.heat),
                    naive.Fullest([&](const ZoneRecord& z) {
                      return NaiveView::Reusable(z, use) && z.data.lifetime == data.lifetime &&
                             z.data.heat == data.heat && z.room() >= min_room;
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
  if (random.Chance(0.002)) return table.Edit(id)->Retire(random.Chance(0.5));
  if (random.Chance(0.3) && zone.live > 0) return table.Edit(id)->RemoveLive(random.Between(1, zone.live));
  if (random.Chance(0.2) && zone.use == ZoneUse::kMetadata && zone.phase != ZonePhase::kEmpty)
    return table.Edit(id)->Release();
  const bool at_rest =
      zone.phase == ZonePhase::kIdle || zone.phase == ZonePhase::kFull || zone.phase == ZonePhase::kFailed;
  if (at_rest && random.Chance(0.2)) {
    table.Edit(id)->victim = !zone.victim;
    return;
  }
  if (at_rest && (zone.pinned || (zone.dead() && random.Chance(0.3)))) {
    table.Edit(id)->pinned = !zone.pinned;
    return;
  }
  switch (zone.phase) {
    case ZonePhase::kEmpty:
      return table.Edit(id)->Lease(kUses[random.Below(3)], {static_cast<Lifetime>(random.Below(kLifetimeCount)),
                                                            static_cast<int8_t>(random.Below(3)),
                                                            static_cast<ZoneHeat>(random.Below(kZoneHeatCount))});
    case ZonePhase::kLeased:
      if (random.Chance(0.05)) return table.Edit(id)->Fail(zone.write_pointer);
      if (random.Chance(0.3) || zone.room() == 0) return table.Edit(id)->EndLease();
      if (zone.use != ZoneUse::kMetadata && zone.live + kBlock <= zone.capacity)
        table.Edit(id)->AddLive(random.Between(1, kBlock));
      return table.Edit(id)->Advance(kBlock * random.Between(1, zone.room() / kBlock));
    case ZonePhase::kIdle:
      if (zone.dead() && (!zone.reusable() || random.Chance(0.5))) return table.Edit(id)->BeginReset();
      if (zone.victim) return;
      if (random.Chance(0.3)) return table.Edit(id)->BeginFinish();
      return table.Edit(id)->Lease(zone.use, zone.data);
    case ZonePhase::kFinishing:
      return table.Edit(id)->EndFinish();
    case ZonePhase::kFull:
    case ZonePhase::kFailed:
      if (zone.dead()) table.Edit(id)->BeginReset();
      return;
    case ZonePhase::kResetting:
      return table.Edit(id)->EndReset();
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
    table.Edit(ZoneId(0))->KeepForMetadata();
    for (int step = 0; step < 1'000; ++step) {
      ChangeSomething(table, random);
      ASSERT_NO_FATAL_FAILURE(ExpectConsistent(table)) << "round " << round << " step " << step;
    }
  }
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

}  // namespace
}  // namespace isozone
