#include "fuse/fuse_ring.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"

namespace isozone {
namespace {

TEST(FuseRingTest, TheKernelHasAQueueForEachCpu) {
  const auto queues = FuseRing::CountQueues();
  ASSERT_TRUE(queues.ok()) << queues.status().ToString();
  EXPECT_GE(*queues, std::thread::hardware_concurrency());
}

TEST(FuseRingTest, EndsWhereTheKernelTakesNoEntry) {
  const FileDescriptor no_fuse(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto ring = FuseRing::Make(no_fuse.get(), 0);
  if (!ring.ok()) GTEST_SKIP() << ring.status().ToString();
  std::thread server([&ring] {
    ASSERT_TRUE((*ring)->Begin().ok());
    fuse_buf request{};
    int error = -EINTR;
    while (error == -EINTR) error = (*ring)->Next(request);
    EXPECT_LT(error, 0);
  });
  server.join();
}

TEST(FuseRingTest, RefusesAnAnswerThatIsTooLong) {
  const FileDescriptor no_fuse(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto ring = FuseRing::Make(no_fuse.get(), 0);
  if (!ring.ok()) GTEST_SKIP() << ring.status().ToString();
  std::array<std::byte, 16> header{};
  std::byte data{};
  const std::array<iovec, 3> parts = {iovec{header.data(), header.size()}, iovec{&data, 1},
                                      iovec{(*ring)->answer_data().data(), kLongestRequest}};
  EXPECT_EQ((*ring)->Answer(parts.data(), 2), 17);
  EXPECT_EQ((*ring)->Answer(parts.data(), 3), -1);
  EXPECT_EQ(errno, EMSGSIZE);
}

}  // namespace
}  // namespace isozone
