#include "device/emulated/nand/zone_map.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

Profile Device(ZoneMapping mapping, uint64_t seed = 0) {
  Profile profile;
  profile.zone_count = 1000;
  profile.zone_size = profile.zone_capacity = 10 * kMiB;
  profile.channels = 4;
  profile.dies = 8;
  profile.mapping = mapping;
  profile.mapping_seed = seed;
  profile.page_size = 64 * kKiB;
  return profile;
}

std::vector<uint32_t> ZonesOfDies(const ZoneMap& map) {
  std::vector<uint32_t> zones(8);
  for (uint32_t zone = 0; zone < 1000; ++zone) ++zones[map.DieOf(zone, 0)];
  return zones;
}

TEST(ZoneMap, RoundRobinPutsZoneOnItsNumberModuloDies) {
  const ZoneMap map(Device(ZoneMapping::kRoundRobin));
  EXPECT_EQ(map.width(), 1U);
  EXPECT_EQ(map.DieOf(3, 0), 3U);
  EXPECT_EQ(map.DieOf(803, 0), 3U);
}

TEST(ZoneMap, InterleavedPutsEveryZoneOnEveryDie) {
  const ZoneMap map(Device(ZoneMapping::kInterleaved));
  ASSERT_EQ(map.width(), 8U);
  std::vector<uint32_t> dies;
  for (uint32_t slot = 0; slot < 8; ++slot) dies.push_back(map.DieOf(3, slot));
  std::sort(dies.begin(), dies.end());
  EXPECT_EQ(dies, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ZoneMap, RandomDependsOnTheSeedAlone) {
  EXPECT_EQ(ZonesOfDies(ZoneMap(Device(ZoneMapping::kRandom, 1))),
            ZonesOfDies(ZoneMap(Device(ZoneMapping::kRandom, 1))));
  EXPECT_NE(ZonesOfDies(ZoneMap(Device(ZoneMapping::kRandom, 1))),
            ZonesOfDies(ZoneMap(Device(ZoneMapping::kRandom, 2))));
}

TEST(ZoneMap, RandomMakesUnequalGroups) {
  const std::vector<uint32_t> zones = ZonesOfDies(ZoneMap(Device(ZoneMapping::kRandom, 1)));
  const auto [smallest, largest] = std::minmax_element(zones.begin(), zones.end());
  EXPECT_GT(*smallest, 0U);
  EXPECT_GT(*largest, 2 * *smallest);
}

TEST(ZoneMap, BytesOnSlotsFollowThePagesRoundTheDies) {
  const ZoneMap map(Device(ZoneMapping::kInterleaved));
  const uint64_t page = 64 * kKiB;
  const uint64_t written = 10 * page + 4096;  // a row of 8, two pages, and the start of another
  EXPECT_EQ(map.BytesOnSlot(0, written), 2 * page);
  EXPECT_EQ(map.BytesOnSlot(1, written), 2 * page);
  EXPECT_EQ(map.BytesOnSlot(2, written), page + 4096);
  EXPECT_EQ(map.BytesOnSlot(3, written), page);
  EXPECT_EQ(map.BytesOnSlot(7, written), page);
}

}  // namespace
}  // namespace isozone
