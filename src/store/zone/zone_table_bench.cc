// What leasing and returning zones costs, on devices of 100 to 100,000 zones, nine tenths of them full. One iteration
// is the whole life of a zone, with every question that the pool asks on the way.
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "base/units.h"
#include "store/zone/placement_policy.h"
#include "store/zone/zone_table.h"

namespace isozone {
namespace {

constexpr uint64_t kCapacity = 72 * kMiB;

ZoneTable NearlyFullTable(uint32_t zone_count) {
  std::vector<ZoneDescriptor> report(zone_count);
  for (uint32_t i = 0; i < zone_count; ++i) report[i] = {ZoneId(i), ZoneState::kEmpty, kCapacity, 0};
  ZoneTable table(report);
  Random random(1);
  for (uint32_t i = 0; i < zone_count; ++i) {
    if (random.Chance(0.1)) continue;
    table.Edit(ZoneId(i))->Lease(ZoneUse::kData, Lifetime::kMedium);
    table.Edit(ZoneId(i))->AddLive(kCapacity);
    table.Edit(ZoneId(i))->Advance(kCapacity);
    table.Edit(ZoneId(i))->EndLease();
  }
  return table;
}

void WriteHalf(ZoneTable& table, const PlacementPolicy& policy, Lifetime lifetime) {
  PlacementQuery query;
  query.lifetime = lifetime;
  query.min_room = 4 * kKiB;
  query.token_available = true;
  query.empty_available = !table.empty().empty();
  const ZoneId zone = *policy.PlaceData(table, query).zone;
  table.Edit(zone)->Lease(ZoneUse::kData, lifetime);
  table.Edit(zone)->AddLive(kCapacity / 2);
  table.Edit(zone)->Advance(kCapacity / 2);
  table.Edit(zone)->EndLease();
}

void ZoneLife(benchmark::State& state) {
  ZoneTable table = NearlyFullTable(static_cast<uint32_t>(state.range(0)));
  const auto policy = *MakePlacementPolicy("zenfs");
  for (auto _ : state) {
    const ZoneId zone = *table.empty().First();
    WriteHalf(table, *policy, Lifetime::kLong);    // opens `zone`
    WriteHalf(table, *policy, Lifetime::kMedium);  // fills it
    benchmark::DoNotOptimize(table.FullestIdle(ZoneUse::kData));
    table.Edit(zone)->RemoveLive(kCapacity);
    table.Edit(*table.dead().First())->BeginReset();
    table.Edit(zone)->EndReset();
  }
}
BENCHMARK(ZoneLife)->Arg(100)->Arg(1'000)->Arg(10'000)->Arg(100'000);

}  // namespace
}  // namespace isozone
