#include "rocksdb/steering/held_flushes.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr int64_t kNowNs = 5'000'000'000;

TEST(HeldFlushesTest, TheFlushThatHasWaitedLongestCounts) {
  HeldFlushes flushes;
  EXPECT_FALSE(flushes.any_waits());
  EXPECT_EQ(flushes.WrittenWhileWaiting(100), 0U);
  const auto first = flushes.BeginWait(100);
  const auto second = flushes.BeginWait(300);
  EXPECT_EQ(flushes.WrittenWhileWaiting(400), 300U);
  flushes.EndWait(first);
  EXPECT_TRUE(flushes.any_waits());
  EXPECT_EQ(flushes.WrittenWhileWaiting(400), 100U);
  flushes.EndWait(second);
  EXPECT_FALSE(flushes.any_waits());
}

TEST(HeldFlushesTest, AFlushRunsFromItsBeginningUntilItsTableIsInstalled) {
  HeldFlushes flushes;
  const FlushJob flush{nullptr, 1, 0};
  for (const FlushStep step : {FlushStep::kBegun, FlushStep::kWrites, FlushStep::kWritten}) {
    flushes.Note(flush, step, kNowNs);
    EXPECT_EQ(flushes.Running(kNowNs), 1U);
  }
  flushes.Note({nullptr, 1, 1}, FlushStep::kBegun, kNowNs);
  EXPECT_EQ(flushes.Running(kNowNs), 2U) << "an atomic flush has one number for all its column families";
  flushes.Note(flush, FlushStep::kInstalled, kNowNs);
  EXPECT_EQ(flushes.Running(kNowNs), 1U);
  flushes.Note({nullptr, 1, 1}, FlushStep::kFailed, kNowNs);
  EXPECT_EQ(flushes.Running(kNowNs), 0U);
}

TEST(HeldFlushesTest, AFlushWhoseEndIsNotToldCountsForATimeOnly) {
  HeldFlushes flushes;
  flushes.Note({nullptr, 1, 0}, FlushStep::kBegun, kNowNs);
  flushes.Note({nullptr, 2, 0}, FlushStep::kWrites, kNowNs);
  EXPECT_EQ(flushes.Running(kNowNs + HeldFlushes::kFlushStepNs), 2U);
  EXPECT_EQ(flushes.Running(kNowNs + HeldFlushes::kFlushStepNs + 1), 1U);
  EXPECT_EQ(flushes.Running(kNowNs + kLongestFlushNs), 1U);
  EXPECT_EQ(flushes.Running(kNowNs + kLongestFlushNs + 1), 0U);
}

}  // namespace
}  // namespace isozone
