#include "store/space/deletion_delays.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr int64_t kSecond = kSecondNs;

TEST(DeletionDelays, RunFromTheDeletionToTheResetOfEachZone) {
  DeletionDelays delays;
  const std::array<ZoneId, 2> zones = {ZoneId(5), ZoneId(7)};
  delays.Deleted(Lifetime::kShort, zones, 1 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Count(), 0U);
  delays.Reset(ZoneId(5), 3 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Count(), 1U);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Max(), static_cast<uint64_t>(2 * kSecond));
  delays.Reset(ZoneId(7), 11 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Sum(), static_cast<uint64_t>(12 * kSecond));
}

TEST(DeletionDelays, AreKeptApartByLifetimeInAZoneOfBoth) {
  DeletionDelays delays;
  const std::array<ZoneId, 1> zone = {ZoneId(5)};
  delays.Deleted(Lifetime::kShort, zone, 1 * kSecond);
  delays.Deleted(Lifetime::kLong, zone, 2 * kSecond);
  delays.Deleted(Lifetime::kShort, zone, 3 * kSecond);
  delays.Reset(ZoneId(5), 4 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Sum(), static_cast<uint64_t>(4 * kSecond));
  EXPECT_EQ(delays.Of(Lifetime::kLong).Sum(), static_cast<uint64_t>(2 * kSecond));
  EXPECT_EQ(delays.Of(Lifetime::kMedium).Count(), 0U);
}

TEST(DeletionDelays, CountAFileOnceInAZone) {
  DeletionDelays delays;
  const std::array<ZoneId, 3> twice = {ZoneId(5), ZoneId(6), ZoneId(5)};
  delays.Deleted(Lifetime::kShort, twice, 1 * kSecond);
  delays.Deleted(Lifetime::kShort, twice, 1 * kSecond + 1);  // another file, merged into one note
  delays.Reset(ZoneId(5), 2 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Count(), 2U);
}

TEST(DeletionDelays, ForgetAZoneThatWasReset) {
  DeletionDelays delays;
  const std::array<ZoneId, 1> zone = {ZoneId(5)};
  delays.Deleted(Lifetime::kShort, zone, 1 * kSecond);
  delays.Reset(ZoneId(5), 2 * kSecond);
  delays.Reset(ZoneId(5), 9 * kSecond);
  delays.Reset(ZoneId(6), 9 * kSecond);
  EXPECT_EQ(delays.Of(Lifetime::kShort).Count(), 1U);
}

}  // namespace
}  // namespace isozone
