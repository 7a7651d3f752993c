#include "store/file/log_burst.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kUnit = kMiB;
constexpr uint64_t kSlice = 192 * kKiB;
constexpr uint32_t kWidth = 8;

// How many frames that are full are started together by a log with so many lanes.
size_t Together(uint64_t length, size_t lanes) {
  size_t waiting = 1;
  while (LogBurst::WaitForMore(waiting, length, kUnit, lanes)) ++waiting;
  return waiting;
}

TEST(LogBurst, CutsUnitsWhileUsersReadIfThereCanBeMoreThanOneLane) {
  EXPECT_EQ(LogBurst::FrameLength(kUnit, kSlice, kWidth, /*users_read=*/false), kUnit);
  EXPECT_EQ(LogBurst::FrameLength(kUnit, kSlice, kWidth, /*users_read=*/true), kSlice);
  EXPECT_EQ(LogBurst::FrameLength(kUnit, kSlice, /*width=*/1, /*users_read=*/true), kUnit);
  EXPECT_EQ(LogBurst::FrameLength(kSlice / 2, kSlice, kWidth, /*users_read=*/true), kSlice / 2) << "a small unit";
}

TEST(LogBurst, LetsFramesWaitUntilThereIsOneForEachLaneOrAsMuchAsAUnit) {
  EXPECT_EQ(Together(kSlice, 0), 1U) << "the first opens a lane";
  EXPECT_EQ(Together(kSlice, 1), 1U);
  EXPECT_EQ(Together(kSlice, 3), 3U);
  EXPECT_EQ(Together(kSlice, kWidth), 5U) << "960 KiB";
  EXPECT_EQ(Together(kUnit / 4, kWidth), 4U);
  EXPECT_EQ(Together(kUnit, kWidth), 1U) << "what is not cut";
}

}  // namespace
}  // namespace isozone
