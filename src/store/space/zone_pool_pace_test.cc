// How the pool slows users down to the rate at which space is made.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "store/space/zone_pool_test_util.h"
#include "store/zone/allocator/write_pace.h"

namespace isozone {
namespace {

const ThrottleRule kAlways = [](const GcSpace&) { return 1000; };

class ZonePoolPaceTest : public ZonePoolTest {
 protected:
  // Opens a pool that has less free space than it wants to have.
  void OpenTight() {
    Open();
    pool_->collected().Attach(true);
    pool_->collected().ThrottleBelow(kAlways);
  }
  uint64_t Waits() const { return pool_->histograms().pace_ns.Count(); }
  ZoneLease MustAcquireToCompact() {
    ZoneRequest request = kData;
    request.compaction = true;
    return MustAcquire(request);
  }
};

TEST_F(ZonePoolPaceTest, NobodyWaitsWhileThereIsSpaceOrNobodyMakesIt) {
  Open();
  ZoneLease compaction = MustAcquireToCompact();
  pool_->PaceLog(kMiB);
  compaction.Release();
  pool_->collected().ThrottleBelow(kAlways);
  pool_->PaceLog(kMiB);
  pool_->PaceFlush(4 * kMiB);
  EXPECT_EQ(Waits(), 0U);
}

TEST_F(ZonePoolPaceTest, LogsGrowWithWhatCompactionHasWritten) {
  OpenTight();
  ZoneLease compaction = MustAcquireToCompact();
  Write(compaction, 4 * kBlock);
  const uint64_t paid = 4 * kBlock / static_cast<uint64_t>(WritePace::kDearest);
  pool_->PaceLog(paid);
  EXPECT_EQ(Waits(), 0U);
  pool_->PaceLog(paid);
  EXPECT_EQ(Waits(), 1U);
}

TEST_F(ZonePoolPaceTest, TheCollectorMakesSpaceToo) {
  OpenTight();
  ZoneLease collector = MustAcquire(kCollector);
  Write(collector, 4 * kBlock);
  pool_->PaceLog(4 * kBlock / static_cast<uint64_t>(WritePace::kDearest));
  EXPECT_EQ(Waits(), 0U);
  pool_->PaceLog(kBlock);
  EXPECT_EQ(Waits(), 1U);
}

// While the collector rested, the user would wait.
TEST_F(ZonePoolPaceTest, WhoIsPacedByTheCollectorAloneTellsItSo) {
  OpenTight();
  ZoneLease collector = MustAcquire(kCollector);
  std::atomic<bool> over = false;
  const std::jthread user([&] {
    while (!over) pool_->PaceLog(kMiB);
  });
  while (!pool_->collected().Look().paced) std::this_thread::yield();
  EXPECT_GT(pace_wanted_, 0);
  EXPECT_FALSE(pool_->collected().Look().wanted);
  over = true;
}

TEST_F(ZonePoolPaceTest, WhoIsPacedByCompactionTooLeavesTheCollectorItsRests) {
  OpenTight();
  ZoneLease collector = MustAcquire(kCollector);
  ZoneLease compaction = MustAcquireToCompact();
  std::atomic<bool> over = false;
  const std::jthread user([&] {
    while (!over) pool_->PaceLog(kMiB);
  });
  for (uint64_t waits = Waits(); Waits() < waits + 2;) EXPECT_FALSE(pool_->collected().Look().paced);
  EXPECT_EQ(pace_wanted_, 0);
  compaction.Release();
  while (!pool_->collected().Look().paced) std::this_thread::yield();
  over = true;
}

TEST_F(ZonePoolPaceTest, AWaitEndsWithTheLastWhoMakesSpace) {
  OpenTight();
  ZoneLease compaction = MustAcquireToCompact();
  ASSERT_TRUE(compaction.BeginWrite());
  EndWrite(compaction, 0);
  std::atomic<bool> over = false;
  std::atomic<uint64_t> calls = 0;
  const std::jthread user([&] {
    for (; !over; ++calls) pool_->PaceLog(kMiB);
  });
  while (Waits() == 0) std::this_thread::yield();
  compaction.Release();
  const uint64_t waits = Waits() + 1;  // one wait may be ending
  const uint64_t calls_then = calls;
  while (calls < calls_then + 100) std::this_thread::yield();
  EXPECT_LE(Waits(), waits);
  over = true;
}

TEST_F(ZonePoolPaceTest, FlushesPayForWhatNoLogHasHad) {
  OpenTight();
  pool_->PaceLog(kMiB);
  const ZoneLease compaction = MustAcquireToCompact();
  pool_->PaceFlush(kMiB);
  EXPECT_EQ(Waits(), 0U);
  pool_->PaceFlush(kMiB);
  EXPECT_EQ(Waits(), 1U);
}

}  // namespace
}  // namespace isozone
