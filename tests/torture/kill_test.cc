// A process that writes to an image file is killed at a random moment. To the device nothing happened, so more must
// survive than a power cut leaves: what was synced, and with log_write_through what was flushed to a log.
//
// The parent knows what the child did: it makes the same steps, by the same seed, on a device of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/mount/format_device.h"
#include "fs/mount/fsck.h"
#include "model/client.h"
#include "model/fine.h"
#include "model/volume.h"

namespace isozone::torture {
namespace {

Profile ImageProfile() {
  Profile profile;
  profile.name = "kill";
  profile.zone_count = 48;
  profile.zone_size = profile.zone_capacity = kMiB;
  profile.max_open_zones = profile.max_active_zones = 12;
  profile.timing = false;
  return profile;
}

// Never near a full device, so that what happens does not depend on when zones are reset.
model::ClientOptions SmallSteps() {
  model::ClientOptions options;
  options.max_append = 16 * kKiB;
  options.live_target = 2 * kMiB;
  return options;
}

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / fmt::format("isozone-kill-{}.img", getpid())).string();
    seed_ = TestSeed();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Status MakeImage() const {
    std::filesystem::remove(path_);
    ISOZONE_RETURN_IF_ERROR(EmulatedDevice::CreateImage(path_, ImageProfile()));
    ISOZONE_ASSIGN_OR_RETURN(const auto device, EmulatedDevice::Open(path_, OpenMode::kReadWrite, {}));
    return FormatDevice(*device, {"kill", false});
  }
  Result<std::unique_ptr<FileSystem>> MountImage(const MountOptions& options) const {
    ISOZONE_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Open(path_, OpenMode::kReadWrite, {}));
    return FileSystem::Mount(std::move(device), options);
  }
  Status CheckImage() const {
    ISOZONE_ASSIGN_OR_RETURN(const auto device, EmulatedDevice::Open(path_, OpenMode::kReadOnly, {}));
    ISOZONE_ASSIGN_OR_RETURN(const FsckReport report, Fsck(*device, {.read_data = true, .progress = {}}));
    return report.clean() ? Status::Ok() : Status::Corruption(report.findings.front().text);
  }

  // Runs `child`, which tells each step by a byte in the pipe and never returns, and kills it after `steps` of them.
  // Returns how many it made; the next may be half done.
  template <typename Child>
  static uint64_t RunAndKill(uint64_t steps, Child child) {
    std::array<int, 2> pipe_ends{};
    EXPECT_EQ(0, pipe(pipe_ends.data()));
    const pid_t pid = fork();
    if (pid == 0) {
      child(pipe_ends[1]);
      _exit(1);
    }
    close(pipe_ends[1]);
    uint64_t made = 0;
    std::array<char, 4096> told{};
    for (ssize_t n = 1; n > 0; made += static_cast<uint64_t>(n)) {
      n = read(pipe_ends[0], told.data(), told.size());
      if (n > 0 && made < steps && made + static_cast<uint64_t>(n) >= steps) kill(pid, SIGKILL);
    }
    close(pipe_ends[0]);
    int outcome = 0;
    waitpid(pid, &outcome, 0);
    EXPECT_TRUE(WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGKILL) << "the child ended by itself: " << outcome;
    return made;
  }
  static void Tell(int pipe_end) {
    if (write(pipe_end, "", 1) != 1) _exit(2);
  }

  std::string path_;
  uint64_t seed_ = 0;
};

TEST_F(KillTest, WhatReachedTheDeviceStays) {
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed_));
  Random random(seed_);
  for (int kills = 0; kills < 40; ++kills) {
    SCOPED_TRACE("kill " + std::to_string(kills));
    const uint64_t seed = random.Next();
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(random.Between(1, 1500), [&](int pipe_end) {
      auto fs = MountImage({});
      if (!fs.ok()) return;
      model::Oracle oracle;
      model::Client client(**fs, oracle, seed, SmallSteps());
      while (client.Step().ok()) Tell(pipe_end);
    });

    auto twin = model::Volume::Create(GeometryOf(ImageProfile()));
    ASSERT_FINE(twin.status());
    ASSERT_FINE(twin->Format());
    ASSERT_FINE(twin->Mount({}));
    model::Oracle oracle;
    {
      model::Client client(twin->fs(), oracle, seed, SmallSteps());
      for (uint64_t i = 0; i < made; ++i) ASSERT_FINE(client.Step());
      oracle.EndDurability();
      ASSERT_FINE(client.Step());
    }
    ASSERT_FINE(CheckImage());
    auto fs = MountImage({});
    ASSERT_FINE(fs.status());
    const auto found = model::Collect(**fs, "");
    ASSERT_FINE(found.status());
    ASSERT_FINE(oracle.CheckAfterPowerCut(*found));
    ASSERT_FINE((*fs)->Unmount());
    fs->reset();
    ASSERT_FINE(CheckImage());
  }
}

TEST_F(KillTest, ALogThatIsWrittenThroughStaysWithoutASync) {
  MountOptions options;
  options.log_write_through = true;
  Random random(seed_);
  for (int kills = 0; kills < 10; ++kills) {
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(random.Between(1, 200), [&](int pipe_end) {
      auto fs = MountImage(options);
      if (!fs.ok()) return;
      const auto log = (*fs)->Create("/log", {FileKind::kLog});
      if (!log.ok()) return;
      for (uint64_t i = 0;; ++i) {
        const std::string line = fmt::format("{:08}\n", i);
        if (!(*log)->Append(std::as_bytes(std::span(line))).ok() || !(*log)->Flush().ok()) return;
        Tell(pipe_end);
      }
    });
    auto fs = MountImage(options);
    ASSERT_FINE(fs.status());
    const auto found = model::Collect(**fs, "");
    ASSERT_FINE(found.status());
    ASSERT_EQ(1u, found->names.count("/log"));
    const std::string& bytes = found->files.at(found->names.at("/log")).bytes;
    EXPECT_GE(bytes.size(), made * 9);
    for (uint64_t i = 0; i < made; ++i) EXPECT_EQ(fmt::format("{:08}\n", i), bytes.substr(i * 9, 9));
  }
}

}  // namespace
}  // namespace isozone::torture
