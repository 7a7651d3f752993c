#include "device/linux/zone_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::HasSubstr;

constexpr uint64_t kZoneSize = kMiB;

QueueFacts Facts() {
  QueueFacts facts;
  facts.model = "host-managed";
  facts.zone_size = kZoneSize;
  facts.write_granularity = 4096;
  facts.max_transfer = 512 * kKiB;
  facts.max_open_zones = 4;
  facts.max_active_zones = 6;
  return facts;
}

KernelZone Sequential(uint64_t capacity = kZoneSize, blk_zone_cond condition = BLK_ZONE_COND_EMPTY) {
  return {0, kZoneSize, capacity, 0, BLK_ZONE_TYPE_SEQWRITE_REQ, condition};
}
KernelZone Conventional() { return {0, kZoneSize, kZoneSize, 0, BLK_ZONE_TYPE_CONVENTIONAL, BLK_ZONE_COND_NOT_WP}; }

// Puts the zones one behind the other.
std::vector<KernelZone> Placed(std::vector<KernelZone> zones) {
  for (size_t i = 0; i < zones.size(); ++i) zones[i].start = i * kZoneSize;
  return zones;
}

ZoneLayout LayoutOf(std::vector<KernelZone> zones, const QueueFacts& facts = Facts()) {
  auto layout = ZoneLayout::Of(facts, Placed(std::move(zones)));
  EXPECT_TRUE(layout.ok()) << layout.status().ToString();
  return std::move(*layout);
}

TEST(ZoneLayout, UsesAllZonesOfADeviceWhoseZonesAreAlike) {
  const ZoneLayout layout = LayoutOf({Sequential(900 * kKiB), Sequential(900 * kKiB), Sequential(900 * kKiB)});
  const DeviceGeometry& geometry = layout.geometry();
  EXPECT_EQ(geometry.zone_count, 3U);
  EXPECT_EQ(geometry.zone_size, kZoneSize);
  EXPECT_EQ(geometry.zone_capacity, 900 * kKiB);
  EXPECT_EQ(geometry.block_size, 4096U);
  EXPECT_EQ(geometry.max_open_zones, 4U);
  EXPECT_EQ(geometry.max_active_zones, 6U);
  EXPECT_EQ(geometry.buffer_alignment, 512U);
  EXPECT_EQ(geometry.optimal_write, 128 * kKiB) << "if the device does not say";
  EXPECT_EQ(layout.conventional() + layout.small() + layout.large(), 0U);
  EXPECT_EQ(layout.PositionOf(DeviceOffset(2 * kZoneSize + 5)), 2 * kZoneSize + 5);
  EXPECT_EQ(layout.RunOf(ZoneId(0), 3), 3U);
}

TEST(ZoneLayout, LeavesConventionalZonesAlone) {
  const ZoneLayout layout = LayoutOf({Conventional(), Conventional(), Sequential(), Conventional(), Sequential()});
  EXPECT_EQ(layout.geometry().zone_count, 2U);
  EXPECT_EQ(layout.conventional(), 3U);
  EXPECT_EQ(layout.PositionOf(ZoneId(0)), 2 * kZoneSize);
  EXPECT_EQ(layout.PositionOf(DeviceOffset(kZoneSize + 4096)), 4 * kZoneSize + 4096);
  EXPECT_EQ(layout.RunOf(ZoneId(0), 2), 1U);
}

TEST(ZoneLayout, LeavesAShorterLastZoneAlone) {
  KernelZone last = Sequential(256 * kKiB);
  last.length = 256 * kKiB;
  const ZoneLayout layout = LayoutOf({Sequential(), Sequential(), last});
  EXPECT_EQ(layout.geometry().zone_count, 2U);
  EXPECT_EQ(layout.small(), 1U);
}

TEST(ZoneLayout, TakesTheCapacityWithWhichMostBytesAreUsed) {
  const ZoneLayout one_small = LayoutOf({Sequential(), Sequential(100 * kKiB), Sequential(), Sequential()});
  EXPECT_EQ(one_small.geometry().zone_capacity, kZoneSize);
  EXPECT_EQ(one_small.geometry().zone_count, 3U);
  EXPECT_EQ(one_small.small(), 1U);
  EXPECT_EQ(one_small.PositionOf(ZoneId(1)), 2 * kZoneSize);

  const ZoneLayout one_large = LayoutOf({Sequential(900 * kKiB), Sequential(), Sequential(900 * kKiB)});
  EXPECT_EQ(one_large.geometry().zone_capacity, 900 * kKiB);
  EXPECT_EQ(one_large.geometry().zone_count, 3U);
  EXPECT_EQ(one_large.large(), 1U);
  EXPECT_TRUE(one_large.IsLarge(ZoneId(1)));
  EXPECT_FALSE(one_large.IsLarge(ZoneId(2)));
}

TEST(ZoneLayout, AZoneThatDiedKeepsItsNumber) {
  const ZoneLayout layout =
      LayoutOf({Sequential(900 * kKiB), Sequential(0, BLK_ZONE_COND_OFFLINE), Sequential(900 * kKiB)});
  EXPECT_EQ(layout.geometry().zone_count, 3U);
  EXPECT_EQ(layout.geometry().zone_capacity, 900 * kKiB);
  EXPECT_EQ(layout.PositionOf(ZoneId(2)), 2 * kZoneSize);
}

TEST(ZoneLayout, AZoneThatDiesStaysWhatItWas) {
  for (const blk_zone_cond condition : {BLK_ZONE_COND_EMPTY, BLK_ZONE_COND_READONLY, BLK_ZONE_COND_OFFLINE}) {
    const ZoneLayout small = LayoutOf({Sequential(), Sequential(100 * kKiB, condition), Sequential()});
    EXPECT_EQ(small.geometry().zone_count, 2U) << condition;
    EXPECT_EQ(small.PositionOf(ZoneId(1)), 2 * kZoneSize) << condition;
    const ZoneLayout vote = LayoutOf({Sequential(), Sequential(600 * kKiB, condition)});
    EXPECT_EQ(vote.geometry().zone_capacity, 600 * kKiB) << condition;
  }
}

TEST(ZoneLayout, CapacitiesAreWholeBlocks) {
  EXPECT_EQ(LayoutOf({Sequential(900 * kKiB + 512)}).geometry().zone_capacity, 900 * kKiB);
}

TEST(ZoneLayout, OffsetsMayBeLarge) {
  QueueFacts facts = Facts();
  facts.zone_size = 2 * kGiB;
  std::vector<KernelZone> zones(4096);
  for (size_t i = 0; i < zones.size(); ++i) {
    zones[i] = {i * facts.zone_size, facts.zone_size, 1077 * kMiB, 0, BLK_ZONE_TYPE_SEQWRITE_REQ, BLK_ZONE_COND_EMPTY};
  }
  zones[0].type = BLK_ZONE_TYPE_CONVENTIONAL;
  const auto layout = ZoneLayout::Of(facts, zones);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->geometry().zone_capacity, 1077 * kMiB);
  const DeviceOffset last = DeviceOffset(layout->geometry().ZoneStart(ZoneId(4094)).value() + 1076 * kMiB);
  EXPECT_EQ(layout->PositionOf(last), 4095 * facts.zone_size + 1076 * kMiB);
  EXPECT_GT(layout->PositionOf(last), 4 * kTiB);
}

TEST(ZoneLayout, FuaCoversTheZoneWhereNothingOrAFlushMakesWritesDurable) {
  QueueFacts facts = Facts();
  facts.durable = DurableWrites::kForced;
  EXPECT_FALSE(LayoutOf({Sequential()}, facts).geometry().fua_covers_zone);
  facts.durable = DurableWrites::kFlushed;
  EXPECT_TRUE(LayoutOf({Sequential()}, facts).geometry().fua_covers_zone);
  facts.durable = DurableWrites::kAlways;
  EXPECT_TRUE(LayoutOf({Sequential()}, facts).geometry().fua_covers_zone);
}

TEST(ZoneLayout, RefusesDevicesThatItCannotUse) {
  EXPECT_THAT(ZoneLayout::Of(Facts(), Placed({Conventional()})).status().ToString(), HasSubstr("in sequence"));
  EXPECT_THAT(ZoneLayout::Of(Facts(), {}).status().ToString(), HasSubstr("in sequence"));
  std::vector<KernelZone> uneven = Placed({Sequential(), Sequential(), Sequential()});
  uneven[1].start += 4096;
  EXPECT_THAT(ZoneLayout::Of(Facts(), uneven).status().ToString(), HasSubstr("not alike"));
}

TEST(ZoneLayout, DescribesZonesAsTheSeamHasThem) {
  const ZoneLayout layout = LayoutOf({Sequential(900 * kKiB), Sequential(900 * kKiB), Sequential()});
  const auto describe = [&](blk_zone_cond condition, uint64_t write_pointer) {
    KernelZone zone = Sequential(kZoneSize, condition);
    zone.write_pointer = write_pointer;
    const ZoneDescriptor described = layout.Describe(ZoneId(2), zone);
    EXPECT_EQ(described.zone, ZoneId(2));
    EXPECT_EQ(described.capacity, 900 * kKiB);
    return std::pair(described.state, described.write_pointer);
  };
  EXPECT_EQ(describe(BLK_ZONE_COND_EMPTY, 0), std::pair(ZoneState::kEmpty, 0UL));
  EXPECT_EQ(describe(BLK_ZONE_COND_IMP_OPEN, 8192), std::pair(ZoneState::kImplicitlyOpen, 8192UL));
  EXPECT_EQ(describe(BLK_ZONE_COND_EXP_OPEN, 0), std::pair(ZoneState::kExplicitlyOpen, 0UL));
  EXPECT_EQ(describe(BLK_ZONE_COND_CLOSED, 4096), std::pair(ZoneState::kClosed, 4096UL));
  EXPECT_EQ(describe(BLK_ZONE_COND_FULL, kZoneSize), std::pair(ZoneState::kFull, 900 * kKiB));
  EXPECT_EQ(describe(BLK_ZONE_COND_READONLY, ~0UL), std::pair(ZoneState::kReadOnly, 900 * kKiB));
  EXPECT_EQ(describe(BLK_ZONE_COND_READONLY, 8192), std::pair(ZoneState::kReadOnly, 8192UL)) << "what can be read";
  EXPECT_EQ(describe(BLK_ZONE_COND_OFFLINE, ~0UL), std::pair(ZoneState::kOffline, 0UL));
  EXPECT_EQ(describe(BLK_ZONE_COND_CLOSED, 900 * kKiB), std::pair(ZoneState::kFull, 900 * kKiB))
      << "a large zone that has all it can take";
}

TEST(KernelZone, IsConvertedFromSectors) {
  blk_zone zone{};
  zone.start = 2048;
  zone.len = 2048;
  zone.wp = 2056;
  zone.capacity = 2000;
  zone.type = BLK_ZONE_TYPE_SEQWRITE_REQ;
  zone.cond = BLK_ZONE_COND_CLOSED;
  const KernelZone converted = ToKernelZone(zone, /*has_capacity=*/true);
  EXPECT_EQ(converted.start, kMiB);
  EXPECT_EQ(converted.length, kMiB);
  EXPECT_EQ(converted.capacity, 2000U * 512);
  EXPECT_EQ(converted.write_pointer, 4096U);
  EXPECT_EQ(converted.condition, BLK_ZONE_COND_CLOSED);
  EXPECT_EQ(ToKernelZone(zone, /*has_capacity=*/false).capacity, kMiB);
  zone.cond = BLK_ZONE_COND_READONLY;
  for (const uint64_t pointer : {uint64_t{2048}, uint64_t{2056}, ~uint64_t{0}}) {
    zone.wp = pointer;  // says nothing
    EXPECT_EQ(ToKernelZone(zone, /*has_capacity=*/true).write_pointer, kMiB);
  }
}

}  // namespace
}  // namespace isozone
