#include "store/zone/allocator/lease_state.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(LeaseStateTest, IsTakenAwayBetweenWritesOnly) {
  LeaseState lease;
  ASSERT_TRUE(lease.BeginWrite());
  EXPECT_TRUE(lease.writing());
  EXPECT_FALSE(lease.EndIfIdle());
  lease.EndWrite();
  EXPECT_FALSE(lease.writing());
  EXPECT_TRUE(lease.EndIfIdle());
  EXPECT_TRUE(lease.ended());
  EXPECT_FALSE(lease.BeginWrite());
}

TEST(LeaseStateTest, EndsInTheMiddleOfAWriteThatHasFailed) {
  LeaseState lease;
  ASSERT_TRUE(lease.BeginWrite());
  lease.End();
  EXPECT_FALSE(lease.writing());
  EXPECT_FALSE(lease.BeginWrite());
}

TEST(LeaseStateTest, AWriteBeginsOrTheLeaseEndsNeverBoth) {
  for (int round = 0; round < 2000; ++round) {
    LeaseState lease;
    std::atomic<bool> go = false;
    bool begun = false;
    std::thread holder([&] {
      while (!go) {
      }
      begun = lease.BeginWrite();
    });
    go = true;
    const bool ended = lease.EndIfIdle();
    holder.join();
    ASSERT_NE(begun, ended);
    ASSERT_EQ(lease.writing(), begun);
    ASSERT_EQ(lease.ended(), ended);
  }
}

}  // namespace
}  // namespace isozone
