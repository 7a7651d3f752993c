#include "fuse/serving_threads.h"

#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(ServingThreadsTest, AThreadThatServesNothingDoesNotWait) { EXPECT_FALSE(ServingThreads::Pause().granted()); }

TEST(ServingThreadsTest, TheOnlyThreadDoesNotWait) {
  ServingThreads threads;
  const ServingThreads::Membership member(threads);
  EXPECT_FALSE(ServingThreads::Pause().granted());
}

TEST(ServingThreadsTest, TheLastThatIsAwakeDoesNotWait) {
  ServingThreads threads;
  const ServingThreads::Membership one(threads);
  const ServingThreads::Membership another(threads);
  const ServingThreads::Membership third(threads);
  std::optional<ServingThreads::Pause> first(std::in_place);
  EXPECT_TRUE(first->granted());
  {
    const ServingThreads::Pause second;
    EXPECT_TRUE(second.granted());
    EXPECT_FALSE(ServingThreads::Pause().granted());
    EXPECT_FALSE(ServingThreads::Pause().granted());  // what was refused has taken nothing
  }
  first.reset();
  EXPECT_TRUE(ServingThreads::Pause().granted());
}

}  // namespace
}  // namespace isozone
