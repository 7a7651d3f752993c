#include "insight/stats/page_layout.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

TEST(PageLayoutTest, AZoneTakes16Bytes) {
  EXPECT_EQ(PageLayout::Size(30'000, 64) - PageLayout::Size(0, 64), 480'000U);
  EXPECT_LT(PageLayout::Size(0, 64), 80'000U);
}

TEST(PageLayoutTest, AZoneComesBackAsItWasPacked) {
  PageZone zone;
  EXPECT_EQ(UnpackZone(PackZone(zone)), zone);
  zone.write_pointer = UINT32_MAX;
  zone.live = UINT32_MAX - 1;
  zone.phase = ZonePhase::kOffline;
  zone.use = ZoneUse::kUnusable;
  zone.data = DataClass(Lifetime::kExtreme, PageZone::kMostLevel, ZoneHeat::kC2);
  zone.writer = ZoneWriter::kOther;
  zone.victim = zone.sealed = zone.kept = true;
  zone.group = UINT16_MAX;
  zone.written_at = PageZone::kAges - 1;
  EXPECT_EQ(UnpackZone(PackZone(zone)), zone);
}

TEST(PageLayoutTest, AnyWordsGiveAZoneThatComesBackAsItself) {
  const uint64_t seed = TestSeed(23);
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const PageZone zone = UnpackZone({random.Next(), random.Next()});
    EXPECT_FALSE(ZoneUseName(zone.use).empty() || LifetimeName(zone.data.lifetime).empty());
    EXPECT_FALSE(ZoneWriterName(zone.writer).empty() || ZoneHeatName(zone.data.heat).empty());
    EXPECT_LE(zone.phase, ZonePhase::kOffline);
    EXPECT_EQ(UnpackZone(PackZone(zone)), zone);
  }
}

TEST(PageLayoutTest, LiveBytesAreRoundedUpToBlocks) {
  ZoneRecord record;
  record.write_pointer = 8192;
  record.live = 4097;
  record.writer = ZoneWriter::kFlush;
  record.written_at = 5 << 20;
  PageZone zone = PageZoneOf(record, 3, 4096, 1 << 20);
  EXPECT_EQ(zone.write_pointer, 2U);
  EXPECT_EQ(zone.live, 2U);
  EXPECT_EQ(zone.group, 3U);
  EXPECT_EQ(zone.written_at, 6U);
  EXPECT_EQ(zone.writer, ZoneWriter::kNone) << "nobody holds a zone that is not leased";
  record.phase = ZonePhase::kLeased;
  EXPECT_EQ(PageZoneOf(record, 3, 4096, 1 << 20).writer, ZoneWriter::kFlush);
}

TEST(PageLayoutTest, BucketsOfAHistogramFollowEachOther) {
  uint64_t end = 0;
  for (int i = 0; i + 1 < PageHistogram::kBuckets; ++i) {
    EXPECT_GT(PageHistogram::EndOf(i), end);
    end = PageHistogram::EndOf(i);
  }
  EXPECT_EQ(PageHistogram::EndOf(0), 256U);
  EXPECT_EQ(end, uint64_t{1} << PageHistogram::kLastPower);
}

}  // namespace
}  // namespace isozone
