#include "store/mount/mount_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/test_volume.h"

namespace isozone {
namespace {

bool IsAsleep(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string stat;
  std::getline(file, stat);
  return stat.find(") S ") != std::string::npos;
}

// Opening a pipe for reading waits for somebody who writes to it.
TEST(MountTableTest, ADeviceThatIsSlowToMountKeepsNoOtherOneWaiting) {
  const std::string pipe = fmt::format("{}isozone_pipe.{}", testing::TempDir(), ::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::atomic<pid_t> mounting = 0;
  std::thread slow([&] {
    mounting = ::gettid();
    EXPECT_FALSE(MountShared("emu:" + pipe, /*read_only=*/true).ok());
  });
  while (mounting == 0 || !IsAsleep(mounting)) std::this_thread::yield();
  const MemoryImage image = EmulatedDevice::CreateInMemory(SmallGeometry()).value();
  {
    const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
    ISOZONE_EXPECT_OK(FormatDevice(*device, {"test", false}));
  }
  ISOZONE_EXPECT_OK(MountShared("emu:" + image.path(), /*read_only=*/false).status());
  const std::ofstream opened(pipe);  // writes nothing: who finds that it is a pipe may have closed it already
  slow.join();
  ::unlink(pipe.c_str());
}

TEST(MountTableTest, AMountThatFailsLeavesTheWayToTheNext) {
  const MemoryImage image = EmulatedDevice::CreateInMemory(SmallGeometry()).value();
  EXPECT_EQ(MountShared("emu:" + image.path(), /*read_only=*/false).status().code(), StatusCode::kNotFound);
  {
    const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
    ISOZONE_EXPECT_OK(FormatDevice(*device, {"test", false}));
  }
  ISOZONE_EXPECT_OK(MountShared("emu:" + image.path(), /*read_only=*/false).status());
}

// Of those who come at once, one mounts, and all get the same.
TEST(MountTableTest, WhoComesMeanwhileWaitsForTheMount) {
  const MemoryImage image = EmulatedDevice::CreateInMemory(SmallGeometry()).value();
  {
    const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
    ISOZONE_EXPECT_OK(FormatDevice(*device, {"test", false}));
  }
  for (int round = 0; round < 20; ++round) {
    std::array<std::shared_ptr<FileSystem>, 4> mounted;
    std::vector<std::thread> threads;
    for (auto& fs : mounted) {
      threads.emplace_back([&] { fs = MountShared("emu:" + image.path(), /*read_only=*/false).value(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& fs : mounted) EXPECT_EQ(fs, mounted.front());
  }
}

}  // namespace
}  // namespace isozone
