#include "store/zone/zone_set.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

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

}  // namespace
}  // namespace isozone
