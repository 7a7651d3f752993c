#include "fuse/thread_jobs.h"

#include <map>

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

class ThreadJobsTest : public testing::Test {
 protected:
  ThreadJob Of(pid_t thread, int64_t now_s) { return jobs_.Of(thread, now_s * kSecondNs); }

  std::map<pid_t, ThreadJob> machine_;
  int looks_ = 0;
  ThreadJobs jobs_{[this](pid_t thread) {
    ++looks_;
    return machine_[thread];
  }};
};

TEST_F(ThreadJobsTest, AThreadIsLookedAtAgainWhenWhatIsKnownIsOld) {
  machine_[7] = ThreadJob::kCompaction;
  EXPECT_EQ(Of(7, 100), ThreadJob::kCompaction);
  machine_[7] = ThreadJob::kFlush;
  EXPECT_EQ(Of(7, 101), ThreadJob::kCompaction);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(Of(7, 102), ThreadJob::kFlush);
  EXPECT_EQ(Of(7, 1'000'000'000), ThreadJob::kFlush);
  EXPECT_EQ(looks_, 3);
}

TEST_F(ThreadJobsTest, ThreadsOfOnePlaceAreNotTakenForEachOther) {
  const pid_t first = 7, second = 7 + static_cast<pid_t>(ThreadJobs::kPlaces);
  machine_[first] = ThreadJob::kCompaction;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Of(first, 0), ThreadJob::kCompaction);
    EXPECT_EQ(Of(second, 0), ThreadJob::kUnknown);
  }
  machine_[INT32_MAX] = ThreadJob::kFlush;
  EXPECT_EQ(Of(INT32_MAX, (int64_t{1} << 30) - 1), ThreadJob::kFlush);
  EXPECT_EQ(Of(INT32_MAX, int64_t{1} << 30), ThreadJob::kFlush) << "where the seconds begin anew";
}

TEST_F(ThreadJobsTest, WhoIsNotKnownHereHasNoJob) {
  EXPECT_EQ(Of(0, 0), ThreadJob::kUnknown);
  EXPECT_EQ(Of(-1, 0), ThreadJob::kUnknown);
  EXPECT_EQ(looks_, 0);
}

}  // namespace
}  // namespace isozone
