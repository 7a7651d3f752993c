// A process that writes to an image file is killed at a random moment, or at each command that it gives the device. To
// the device nothing happened, and what it did not have yet lies in kept memory: so everything must survive that a call
// has returned, whether it was synced or not.
//
// The parent knows what the child did: it makes the same steps, by the same seed, on a device or a model of its own.
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "model/client.h"
#include "model/fine.h"
#include "model/volume.h"
#include "store/inode_files.h"
#include "store/kept/kept_memory.h"
#include "store/mount/format_device.h"
#include "store/mount/fsck.h"
#include "torture/kill_test_util.h"
#include "torture/scribbler.h"

namespace isozone::torture {
namespace {

// Never near a full device, so that what happens does not depend on when zones are reset.
model::ClientOptions SmallSteps() {
  model::ClientOptions options;
  options.max_append = 16 * kKiB;
  options.live_target = 2 * kMiB;
  return options;
}

TEST_F(KillTest, WhatReachedTheDeviceStays) {
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed_));
  Random random(seed_);
  for (int kills = 0; kills < 40; ++kills) {
    SCOPED_TRACE("kill " + std::to_string(kills));
    const uint64_t seed = random.Next();
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(random.Between(1, 1500), [&](int pipe_end) {
      auto fs = MountImage(Options());
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
    auto fs = MountImage(Options());
    ASSERT_FINE(fs.status());
    const auto found = model::Collect(**fs, "");
    ASSERT_FINE(found.status());
    ASSERT_FINE(oracle.CheckAfterPowerCut(*found));
    ASSERT_FINE((*fs)->Unmount());
    fs->reset();
    ASSERT_FINE(CheckImage());
  }
}

TEST_F(KillTest, WhatACallHasReturnedStaysWithoutASync) {
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed_));
  Random random(seed_);
  for (int kills = 0; kills < 25; ++kills) {
    SCOPED_TRACE("kill " + std::to_string(kills));
    const uint64_t seed = random.Next();
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(
        random.Between(1, 1200),
        [&](int pipe_end) {
          auto fs = MountImage(Options());
          if (!fs.ok()) return;
          Scribbler scribbler(seed);
          while (scribbler.Step(fs->get()).ok()) Tell(pipe_end);
        },
        static_cast<Death>(kills % 4));
    Scribbler model(seed);
    for (uint64_t i = 0; i < made; ++i) ASSERT_FINE(model.Step(nullptr));
    const auto before = model.Contents();
    ASSERT_FINE(model.Step(nullptr));
    {
      // Another process sees it, before and after it is taken over.
      MountOptions options = Options();
      options.read_only = true;
      auto device = EmulatedDevice::Open(path_, OpenMode::kReadOnly, {});
      ASSERT_FINE(device.status());
      auto beside = FileSystem::Mount(std::move(*device), options);
      ASSERT_FINE(beside.status());
      ExpectBetween(model.SeenBeside(before), model.SeenBeside(model.Contents()),
                    model.SeenBeside(ContentsOf(**beside)));
      ASSERT_FINE((*beside)->Unmount());
    }
    auto fs = MountImage(Options());
    ASSERT_FINE(fs.status());
    ExpectBetween(before, model.Contents(), ContentsOf(**fs));
    ASSERT_FINE((*fs)->Unmount());
    fs->reset();
    EXPECT_FALSE(std::filesystem::exists(KeptFile()));
    ASSERT_FINE(CheckImage());
  }
}

// What was left in memory is of no use on a device that is another by now, or older, or after another boot.
TEST_F(KillTest, MemoryOfAnotherDeviceTimeOrBootIsNotTaken) {
  const auto write_and_die = [&](const std::string& text) {
    RunAndKill(1, [&](int pipe_end) {
      auto fs = MountImage(Options());
      if (!fs.ok()) return;
      auto log = (*fs)->Create("/" + text, {FileKind::kLog});
      if (!log.ok() || !(*log)->Append(std::as_bytes(std::span(text))).ok()) return;
      for (;;) Tell(pipe_end);
    });
  };
  ASSERT_FINE(MakeImage());
  write_and_die("taken");
  ASSERT_FINE(CheckImage());
  EXPECT_TRUE(std::filesystem::exists(KeptFile())) << "the next mount needs it";
  EXPECT_EQ(NamesOf(MountImage(Options())), std::set<std::string>{"taken"});

  write_and_die("formatted");
  {
    const auto device = EmulatedDevice::Open(path_, OpenMode::kReadWrite, {});
    ASSERT_FINE(device.status());
    FormatOptions format{"kill", false};
    format.force = true;
    ASSERT_FINE(FormatDevice(**device, format));
  }
  ASSERT_FINE(CheckImage());
  EXPECT_FALSE(std::filesystem::exists(KeptFile())) << "fsck removes what is of no use";
  EXPECT_EQ(NamesOf(MountImage(Options())), std::set<std::string>{});

  std::filesystem::copy_file(path_, directory_ / "older");
  write_and_die("first");
  std::filesystem::copy_file(directory_ / "older", path_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(NamesOf(MountImage(Options())), std::set<std::string>{}) << "the device has the number of another mount";

  write_and_die("boot");
  std::filesystem::permissions(KeptFile(), std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  std::fstream(KeptFile(), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(offsetof(KeptHeader, boot_id))
      .put('x');
  EXPECT_EQ(NamesOf(MountImage(Options())), std::set<std::string>{});
}

// Each device has memory of its own, whoever gives it the name of another's.
TEST_F(KillTest, TwoDevicesDoNotTakeEachOthersMemory) {
  const std::string first = path_;
  const std::string second = directory_ / "second";
  const auto write_and_die = [&](const std::string& name) {
    ASSERT_FINE(MakeImage());
    RunAndKill(1, [&](int pipe_end) {
      auto fs = MountImage(Options());
      if (!fs.ok() || !(*fs)->Create("/" + name, {FileKind::kSmall}).ok()) return;
      for (;;) Tell(pipe_end);
    });
  };
  for (const bool swapped : {false, true}) {
    write_and_die("first");
    const auto memory_of_first = KeptFile();
    path_ = second;
    write_and_die("second");
    if (swapped) {
      std::filesystem::rename(memory_of_first, directory_ / "aside");
      std::filesystem::rename(KeptFile(), memory_of_first);
      std::filesystem::rename(directory_ / "aside", KeptFile());
    }
    EXPECT_EQ(NamesOf(MountImage(Options())), swapped ? std::set<std::string>{} : std::set<std::string>{"second"});
    path_ = first;
    EXPECT_EQ(NamesOf(MountImage(Options())), swapped ? std::set<std::string>{} : std::set<std::string>{"first"});
  }
}

// Changes of names wait where there is no room for their records.
TEST_F(KillTest, ChangesOfNamesStayThoughTheRingIsFull) {
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed_));
  Random random(seed_);
  MountOptions options = Options();
  options.kept_memory = kKeptMemoryMin;  // of which 64 KiB are for records
  const auto value = [](uint64_t number) { return fmt::format("{:030000}", number); };
  for (int kills = 0; kills < 8; ++kills) {
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(random.Between(1, 60), [&](int pipe_end) {
      auto fs = MountImage(options);
      if (!fs.ok() || !(*fs)->CreateDirectory("/d").ok()) return;
      const auto inode = (*fs)->Stat("/d")->inode;
      for (uint64_t number = 1;; ++number) {
        const Status status = (*fs)->inodes().SetXattr(inode, "user.n", value(number), XattrMode::kSet);
        if (!status.ok() || !(*fs)->CreateDirectory(fmt::format("/d/{}", number)).ok()) return;
        Tell(pipe_end);
      }
    });
    auto fs = MountImage(options);
    ASSERT_FINE(fs.status());
    for (uint64_t number = 1; number <= made; ++number) ASSERT_FINE((*fs)->Stat(fmt::format("/d/{}", number)).status());
    const auto found = (*fs)->inodes().GetXattr((*fs)->Stat("/d")->inode, "user.n");
    ASSERT_FINE(found.status());
    EXPECT_GE(*found, value(made));
    ASSERT_FINE((*fs)->Unmount());
  }
}

// Reads of one zone fail.
class BadZoneDevice final : public PassingDevice {
 public:
  BadZoneDevice(std::unique_ptr<ZonedDevice> device, ZoneId zone)
      : PassingDevice(*device), own_(std::move(device)), zone_(zone) {}

  void Submit(DeviceRequest& request) override {
    const bool bad = request.op == DeviceOp::kRead && geometry().ZoneOf(request.offset) == zone_;
    if (!bad) return own_->Submit(request);
    request.status = DeviceStatus::kUnrecoveredReadError;
    request.done(request);
  }

 private:
  const std::unique_ptr<ZonedDevice> own_;
  const ZoneId zone_;
};

// Where the end of a log is lost, what came after it is lost as well: a database would take it for what comes next.
TEST_F(KillTest, NoLogIsTakenOverBehindOneThatLostItsEnd) {
  ASSERT_FINE(MakeImage());
  RunAndKill(1, [&](int pipe_end) {
    auto fs = MountImage(Options());
    if (!fs.ok()) return;
    const std::string bytes(10'000, 'x');
    const auto append = [&](FileWriter& file) { return file.Append(std::as_bytes(std::span(bytes))).ok(); };
    const auto first = (*fs)->Create("/1.log", {FileKind::kLog});
    if (!first.ok() || !append(**first) || !(*first)->Sync().ok() || !append(**first)) return;
    const auto second = (*fs)->Create("/2.log", {FileKind::kLog});
    const auto other = (*fs)->Create("/other", {FileKind::kSmall});
    if (!second.ok() || !other.ok() || !append(**second) || !append(**other)) return;
    for (;;) Tell(pipe_end);
  });
  MountOptions options = Options();
  options.read_only = true;
  std::vector<ZoneOfFile> zones;
  {
    auto beside = FileSystem::Mount(EmulatedDevice::Open(path_, OpenMode::kReadOnly, {}).value(), options);
    ASSERT_FINE(beside.status());
    zones = (*beside)->state().ZonesOf("/1.log").value();
    EXPECT_EQ(ContentsOf(**beside)["2.log"].size(), 10'000U);
  }
  ASSERT_EQ(zones.size(), 1U);
  auto device = EmulatedDevice::Open(path_, OpenMode::kReadWrite, {});
  ASSERT_FINE(device.status());
  auto fs = FileSystem::Mount(std::make_unique<BadZoneDevice>(*std::move(device), zones.front().zone), Options());
  ASSERT_FINE(fs.status());
  EXPECT_EQ((*fs)->Stat("/2.log")->size, 0U);
  EXPECT_EQ((*fs)->Stat("/other")->size, 10'000U);
  ASSERT_FINE((*fs)->Unmount());
}

// What root's process has left cannot be read by the owner of the image, who must not go on without it.
TEST_F(KillTest, WhatOnlyAnotherUserMayReadIsNotPassedOver) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOwner = 64'232;
  ASSERT_FINE(MakeImage());
  ASSERT_EQ(chown(path_.c_str(), kOwner, kOwner), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  RunAndKill(1, [&](int pipe_end) {
    auto fs = MountImage(Options());
    if (!fs.ok() || !(*fs)->Create("/a", {FileKind::kSmall}).ok()) return;
    for (;;) Tell(pipe_end);
  });
  const pid_t pid = fork();
  if (pid == 0) {
    if (setresgid(kOwner, kOwner, kOwner) != 0 || setresuid(kOwner, kOwner, kOwner) != 0) _exit(2);
    const auto fs = MountImage(Options());
    _exit(fs.status().Is(StatusCode::kPermissionDenied) ? 0 : 1);
  }
  int outcome = 0;
  waitpid(pid, &outcome, 0);
  EXPECT_EQ(outcome, 0);
  auto fs = MountImage(Options());
  ASSERT_FINE(fs.status());
  ASSERT_FINE((*fs)->Stat("/a").status());
  ASSERT_FINE((*fs)->Unmount());
}

// A process that may open few files finds what was left, or does not mount: it never goes on without, and never removes
// it.
TEST_F(KillTest, WhatCannotBeOpenedForWantOfDescriptorsIsNotPassedOver) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs descriptors to look at an object";
#endif
  constexpr size_t kBytes = 200'000;  // more than write_buffer, so that the device has some of it
  std::set<bool> mounted;
  for (rlim_t free_files = 0; free_files < 12; ++free_files) {
    SCOPED_TRACE(free_files);
    ASSERT_FINE(MakeImage());
    RunAndKill(1, [&](int pipe_end) {
      auto fs = MountImage(Options());
      if (!fs.ok()) return;
      const auto log = (*fs)->Create("/log", {FileKind::kLog});
      const std::string bytes(kBytes, 'x');
      if (!log.ok() || !(*log)->Append(std::as_bytes(std::span(bytes))).ok()) return;
      for (;;) Tell(pipe_end);
    });
    const pid_t pid = fork();
    if (pid == 0) {
      const rlim_t next = static_cast<rlim_t>(dup(0));
      close(static_cast<int>(next));
      const rlimit few{next + free_files, next + free_files};
      if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(3);
      const Status checked = CheckImage();
      const auto fs = MountImage(Options());
      if (!fs.ok()) _exit(1);
      _exit(checked.ok() && (*fs)->Stat("/log").ok() && (*fs)->Stat("/log")->size == kBytes ? 0 : 2);
    }
    int outcome = 0;
    waitpid(pid, &outcome, 0);
    ASSERT_TRUE(WIFEXITED(outcome) && WEXITSTATUS(outcome) <= 1) << outcome;
    mounted.insert(WEXITSTATUS(outcome) == 0);
    EXPECT_EQ(ContentsOf(*MountImage(Options()).value())["log"], std::string(kBytes, 'x'));
  }
  EXPECT_EQ(mounted, (std::set<bool>{false, true}));
}

// Takes all room of the file system that `directory` is on.
void FillUp(const std::filesystem::path& directory) {
  std::ofstream file(directory / "filler", std::ios::binary);
  const std::string bytes(64 * kKiB, 'x');
  while (file << bytes << std::flush) continue;
}

// The memory of the process that was killed is there until it has been taken over. Where both do not fit, the new one
// is smaller, and where there is no room at all, there is none until the next mount. No kill loses anything.
TEST_F(KillTest, WhatTakesTheRoomOfTheNextMemoryIsTakenOver) {
  const std::filesystem::path small = directory_ / "small";
  std::filesystem::create_directories(small);
  MountOptions options = Options();
  options.kept_memory_directory = small;
  for (const bool is_full : {false, true}) {
    SCOPED_TRACE(is_full ? "full" : "small");
    if (mount("none", small.c_str(), "tmpfs", 0, "size=3m") != 0) GTEST_SKIP() << "needs the right to mount";
    ASSERT_FINE(MakeImage());
    for (int kills = 0; kills < 6; ++kills) {
      RunAndKill(1, [&](int pipe_end) {
        auto fs = MountImage(options);
        if (!fs.ok()) return;
        for (int file = 0; file < kills; ++file) {
          const auto found = (*fs)->Stat(fmt::format("/{}", file));
          if (!found.ok() || found->size != 1000) return;
        }
        const auto log = (*fs)->Create(fmt::format("/{}", kills), {FileKind::kLog});
        const std::string bytes(1000, 'x');
        if (!log.ok() || !(*log)->Append(std::as_bytes(std::span(bytes))).ok() || !(*log)->Flush().ok()) return;
        // Names need memory, or a sync.
        if (is_full && kills % 2 == 1 && !(*fs)->SyncMetadata().ok()) return;
        for (;;) Tell(pipe_end);
      });
      EXPECT_EQ(std::filesystem::exists(KeptFileIn(small)), !is_full || kills % 2 == 0);
      if (is_full && kills == 0) FillUp(small);
    }
    EXPECT_EQ(NamesOf(MountImage(options)).size(), 6U);
    EXPECT_EQ(umount(small.c_str()), 0);
  }
}

// Where no memory outlives the process, each flush of a log writes to the device.
TEST_F(KillTest, WithoutKeptMemoryWhatWasFlushedToALogStays) {
  MountOptions options = Options();
  options.kept_memory_directory = directory_ / "missing";
  const std::filesystem::path full = directory_ / "full";
  std::filesystem::create_directories(full);
  const bool has_full = mount("none", full.c_str(), "tmpfs", 0, "size=64k") == 0;  // only root may
  Random random(seed_);
  for (int kills = 0; kills < 5; ++kills) {
    ASSERT_FINE(MakeImage());
    if (has_full && kills > 1) options.kept_memory_directory = full;
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
    const std::string bytes = ContentsOf(**fs)["log"];
    EXPECT_GE(bytes.size(), made * 9);
    for (uint64_t i = 0; i < made; ++i) EXPECT_EQ(fmt::format("{:08}\n", i), bytes.substr(i * 9, 9));
  }
  EXPECT_TRUE(!has_full || umount(full.c_str()) == 0);
}

}  // namespace
}  // namespace isozone::torture
