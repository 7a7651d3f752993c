#include "rocksdb/lsm/lsm_limits.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;

std::vector<uint64_t> Mib(std::vector<uint64_t> bytes) {
  for (uint64_t& one : bytes) one /= kMiB;
  return bytes;
}

LsmLimits Of(std::vector<uint64_t> mib) {
  for (uint64_t& one : mib) one *= kMiB;
  return LsmLimits::FromLastLevel(mib, 256 * kMiB, 10);
}

TEST(LsmLimits, EachLevelIsLargerByTheFactor) {
  EXPECT_THAT(Mib(LsmLimits::Exponential(5, 10 * kMiB, 2.5).capacity_bytes), ElementsAre(0, 10, 25, 62, 156));
}

TEST(LsmLimits, MoreThanCanBeCountedIsTheMost) {
  const LsmLimits limits = LsmLimits::Exponential(32, kTiB, 1000);
  EXPECT_THAT(std::vector<uint64_t>(limits.capacity_bytes.begin() + 8, limits.capacity_bytes.end()),
              Each(Ge(uint64_t{1} << 63)));
}

TEST(LsmLimits, AFactorBelowOneIsOne) {
  EXPECT_THAT(Mib(LsmLimits::Exponential(4, 10 * kMiB, 0.5).capacity_bytes), ElementsAre(0, 10, 10, 10));
}

TEST(LsmLimits, AnEmptyTreeBeginsWithItsLastLevel) {
  const LsmLimits limits = Of({0, 0, 0, 0, 0});
  EXPECT_EQ(limits.base_level, 4);
  EXPECT_EQ(limits.LevelBelow(0), 4);
}

TEST(LsmLimits, ALevelIsPutInFrontWhereTheBaseLevelWouldBeTooLarge) {
  EXPECT_EQ(Of({100, 0, 0, 0, 256}).base_level, 4);
  EXPECT_EQ(Of({100, 0, 0, 0, 257}).base_level, 3);
  EXPECT_EQ(Of({0, 0, 0, 0, 2560}).base_level, 3);
  EXPECT_EQ(Of({0, 0, 0, 0, 2561}).base_level, 2);
}

TEST(LsmLimits, LevelsRiseEvenlyToTheLastOne) {
  EXPECT_THAT(Mib(Of({0, 0, 0, 300, 12'544}).capacity_bytes), ElementsAre(256, 256, 256, 1792, 12'544));
  EXPECT_THAT(Mib(Of({0, 0, 30, 300, 32'000}).capacity_bytes), ElementsAre(256, 256, 1280, 6400, 32'000));
}

TEST(LsmLimits, NoStepIsLessThanHalfOfTheFactor) {
  EXPECT_THAT(Mib(Of({0, 0, 0, 300, 3000}).capacity_bytes), ElementsAre(256, 256, 256, 600, 3000));
  EXPECT_THAT(Mib(Of({0, 0, 0, 300, 500}).capacity_bytes), ElementsAre(256, 256, 256, 256, 500));
}

TEST(LsmLimits, ALevelThatIsNotNeededIsEmptied) {
  const LsmLimits limits = Of({0, 10, 0, 0, 500});
  EXPECT_EQ(limits.base_level, 1);
  EXPECT_THAT(Mib(limits.capacity_bytes), ElementsAre(256, 0, 0, 256, 500));
}

TEST(LsmLimits, MoreThanTheLevelsCanHoldStaysBelowTheFactor) {
  const LsmLimits limits = Of({0, 0, 100'000});
  EXPECT_EQ(limits.base_level, 1);
  EXPECT_THAT(Mib(limits.capacity_bytes), ElementsAre(256, 256, 2560));
}

}  // namespace
}  // namespace isozone
