#include "device/linux/opened_block_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/assert_ok.h"

namespace isozone {
namespace {

using testing::HasSubstr;

// A file in memory stands for the device. The kernel refuses io_uring, because the process may have no more
// descriptors.
class WithoutRingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer needs descriptors to look at an object";
#endif
    const FileDescriptor next(::dup(file_.get()));
    ASSERT_GE(next.get(), 0);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next.get());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  void TearDown() override { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

  FileDescriptor file_{::memfd_create("device", MFD_CLOEXEC)};
  rlimit before_{};
};

TEST_F(WithoutRingTest, ThreadsAreChosenWhichSayWhy) {
  const auto opened = OpenedBlockDevice::Create(std::move(file_), TransferPath::kBest);
  ISOZONE_ASSERT_OK(opened.status());
  EXPECT_EQ((*opened)->transfer_path(), "32 threads (io_uring: Too many open files)");
}

TEST_F(WithoutRingTest, ARingThatIsWantedIsAnError) {
  const Status status = OpenedBlockDevice::Create(std::move(file_), TransferPath::kRing).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_THAT(status.ToString(),
              HasSubstr("the kernel refuses io_uring: Too many open files; leave the option io= out"));
}

TEST(OpenedBlockDevice, TakesTheThreadsThatAreWanted) {
  const auto opened =
      OpenedBlockDevice::Create(FileDescriptor(::memfd_create("device", MFD_CLOEXEC)), TransferPath::kThreads);
  ISOZONE_ASSERT_OK(opened.status());
  EXPECT_EQ((*opened)->transfer_path(), "32 threads");
}

TEST(OpenedBlockDevice, KnowsWhichKernelsHavePointersOfTheirOwn) {
  for (const auto& [kernel, has_pointers] : {std::pair(KernelRelease{6, 9}, false), {{6, 10}, true}, {{7, 3}, true}}) {
    const auto opened = OpenedBlockDevice::Create(FileDescriptor(::memfd_create("device", MFD_CLOEXEC)),
                                                  TransferPath::kThreads, kernel);
    ISOZONE_ASSERT_OK(opened.status());
    EXPECT_EQ((*opened)->may_err_about_pointers(), has_pointers) << kernel.major << "." << kernel.minor;
  }
}

// Files take no commands of NVMe, and a kernel that cannot pass them on answers in the same way.
TEST(OpenedBlockDevice, NeedsAKernelThatPassesCommandsOn) {
  for (const TransferPath path : {TransferPath::kBest, TransferPath::kThreads}) {
    QueueFacts facts;
    facts.logical_block = 4096;
    OpenedNamespace passing{FileDescriptor(::memfd_create("commands", MFD_CLOEXEC)), 1};
    const Status status = OpenedBlockDevice::CreatePassing(FileDescriptor(::memfd_create("device", MFD_CLOEXEC)), path,
                                                           std::move(passing), facts)
                              .status();
    EXPECT_EQ(status.code(), StatusCode::kNotSupported);
    EXPECT_THAT(status.ToString(), HasSubstr("the kernel does not pass NVMe commands on"));
    EXPECT_THAT(status.ToString(), HasSubstr("; name the block device"));
  }
}

}  // namespace
}  // namespace isozone
