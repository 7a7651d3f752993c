#include "device/linux/kernel_release.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(KernelRelease, IsTheFirstTwoNumbers) {
  EXPECT_EQ(ParseKernelRelease("6.1.0-18-amd64"), (KernelRelease{6, 1}));
  EXPECT_EQ(ParseKernelRelease("6.10-rc1"), (KernelRelease{6, 10}));
  EXPECT_EQ(ParseKernelRelease("7.3+deb14-amd64"), (KernelRelease{7, 3}));
  for (const char* const none : {"", "6", "6.", "6-1", ".1", "x"}) {
    EXPECT_EQ(ParseKernelRelease(none), KernelRelease()) << none;
  }
}

TEST(KernelRelease, AreOrderedByTheirNumbers) {
  EXPECT_LT((KernelRelease{6, 9}), (KernelRelease{6, 10}));
  EXPECT_LT((KernelRelease{6, 10}), (KernelRelease{7, 0}));
}

TEST(KernelRelease, TheRunningOneHasOne) { EXPECT_GE(RunningKernel(), (KernelRelease{2, 6})); }

}  // namespace
}  // namespace isozone
