#include "insight/stats/statistics.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "insight/stats/stats_test_util.h"

namespace isozone {
namespace {

// Of values that are each `value` ns, `count` times.
LatencyFigures LatencyOf(std::initializer_list<std::pair<uint64_t, uint64_t>> values) {
  Histogram fine;
  for (const auto& [value, count] : values) {
    for (uint64_t i = 0; i < count; ++i) fine.Add(value);
  }
  PageHistogram coarse;
  Coarsen(fine, coarse);
  LatencyFigures latency;
  latency.sum = coarse.sum;
  latency.max = coarse.max;
  latency.buckets = coarse.buckets;
  for (const uint64_t count : coarse.buckets) latency.count += count;
  return latency;
}

TEST(StatisticsTest, PercentilesAreThoseOfTheValuesToAQuarterOfAPowerOfTwo) {
  const LatencyFigures latency = LatencyOf({{10'000, 90}, {1'000'000, 10}});
  EXPECT_EQ(latency.count, 100U);
  EXPECT_NEAR(latency.Percentile(50), 10'000, 2'500);
  EXPECT_NEAR(latency.Percentile(99), 1'000'000, 250'000);
  EXPECT_LE(latency.Percentile(100), 1'000'000);
  EXPECT_EQ(LatencyFigures().Percentile(99), 0);
}

TEST(StatisticsTest, TheLatenciesSinceALookLeaveOutThoseBefore) {
  const LatencyFigures before = LatencyOf({{10'000, 90}});
  const LatencyFigures since = LatencyOf({{10'000, 90}, {1'000'000, 10}}).Since(before);
  EXPECT_EQ(since.count, 10U);
  EXPECT_NEAR(since.Percentile(1), 1'000'000, 250'000);
  EXPECT_EQ(before.Since(LatencyOf({{10'000, 91}})).count, 0U) << "of another mount";
}

Statistics WithHistory() {
  Statistics statistics;
  PageFigures before{};
  before.taken_ns = 10 * kSecondNs;
  statistics.history = {before};
  PageFigures& now = statistics.figures;
  now.taken_ns = 20 * kSecondNs;
  now.zones_died = 30;
  now.zones_begun[static_cast<size_t>(ZoneWriter::kFlush)] = 50;
  now.zones_begun[static_cast<size_t>(ZoneWriter::kGc)] = 10;
  now.capacity = 1000;
  now.free = 42;
  statistics.read_ns = now.taken_ns;
  return statistics;
}

TEST(StatisticsTest, RatesFollowFromOneLook) {
  const RecentRates rates = RatesOf(WithHistory());
  EXPECT_EQ(rates.seconds, 10);
  EXPECT_EQ(rates.zones_died, 3);
  EXPECT_EQ(rates.AllBegun(), 6);
  EXPECT_EQ(RatesOf(Statistics()).seconds, 0);
}

TEST(StatisticsTest, AWaitForSpaceIsExplainedByTheRatesOfZones) {
  const WaitView wait{ZoneWriter::kFlush, WaitReason::kCollection, 19 * kSecondNs};
  EXPECT_EQ(ExplainWait(wait, WithHistory()),
            "flush waits for GC to make space, since 1.0 s: 3.0 zones a second die, 6.0 are begun, 5.0 "
            "of them by flush; 4.2 % are free");
}

TEST(StatisticsTest, AWaitForAnActiveZoneIsExplainedByWhoHasThem) {
  Statistics statistics = WithHistory();
  statistics.max_active_zones = 14;
  statistics.figures.active_zones = 14;
  statistics.figures.active_metadata = 2;
  statistics.figures.active_data = 12;
  const WaitView wait{ZoneWriter::kCompaction, WaitReason::kActiveZone, 20 * kSecondNs};
  EXPECT_EQ(ExplainWait(wait, statistics),
            "compaction waits for an active zone, since 0.0 s: 14 of 14 are active: 2 for metadata, 0 for logs, 0 for "
            "GC, 12 for data, 0 of others");
}

TEST(StatisticsTest, EventsAreToldInWords) {
  EXPECT_EQ(DescribeEvent({0, PageEventKind::kReset, 1, 12, kMiB, 0, 0}), "zone 12 was reset, 1.0 MiB written");
}

}  // namespace
}  // namespace isozone
