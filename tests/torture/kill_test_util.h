// KillTest: an image file, and processes that write to it and die. The parent knows what a child did: it makes the same
// steps, by the same seed, on a device or a model of its own.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/oracle.h"
#include "model/volume.h"
#include "store/kept/kept_memory.h"
#include "store/mount/format_device.h"
#include "store/mount/fsck.h"

namespace isozone::torture {

inline Profile ImageProfile() {
  Profile profile;
  profile.name = "kill";
  profile.zone_count = 48;
  profile.zone_size = profile.zone_capacity = kMiB;
  profile.max_open_zones = profile.max_active_zones = 12;
  profile.timing = false;
  return profile;
}

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("isozone-kill-{}", getpid());
    std::filesystem::create_directories(directory_);
    path_ = directory_ / "image";
    seed_ = TestSeed();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Status MakeImage() const {
    std::filesystem::remove(path_);
    ISOZONE_RETURN_IF_ERROR(EmulatedDevice::CreateImage(path_, ImageProfile()));
    ISOZONE_ASSIGN_OR_RETURN(const auto device, EmulatedDevice::Open(path_, OpenMode::kReadWrite, {}));
    return FormatDevice(*device, {"kill", false});
  }
  MountOptions Options() const {
    MountOptions options;
    options.write_buffer = 64 * kKiB;
    options.kept_memory = 2 * kMiB;
    options.kept_memory_directory = directory_;
    return options;
  }
  Result<std::unique_ptr<FileSystem>> MountImage(const MountOptions& options) const {
    ISOZONE_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Open(path_, OpenMode::kReadWrite, {}));
    return FileSystem::Mount(std::move(device), options);
  }
  std::filesystem::path KeptFile() const { return KeptFileIn(directory_); }
  std::filesystem::path KeptFileIn(const std::filesystem::path& directory) const {
    return directory / KeptMemoryOwner(*PageOwner::Of(path_)).page_name;
  }
  Status CheckImage() const {
    ISOZONE_ASSIGN_OR_RETURN(const auto device, EmulatedDevice::Open(path_, OpenMode::kReadOnly, {}));
    ISOZONE_ASSIGN_OR_RETURN(const FsckReport report,
                             Fsck(*device, {.read_data = true, .progress = {}, .kept_memory_directory = directory_}));
    return report.clean() ? Status::Ok() : Status::Corruption(report.findings.front().text);
  }

  // How a process ends without unmounting: another one kills it, or it does by itself.
  enum class Death : uint8_t { kKilled, kAborts, kFaults, kExits };

  // Runs `child`, which tells each step by a byte in the pipe and never returns, until its death after `steps` of them.
  // Returns how many it made; the next may be half done.
  template <typename Child>
  static uint64_t RunAndKill(uint64_t steps, Child child, Death death = Death::kKilled) {
    std::array<int, 2> pipe_ends{};
    death_ = death;
    steps_left_ = steps;
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
      const bool last = n > 0 && made < steps && made + static_cast<uint64_t>(n) >= steps;
      if (last && death == Death::kKilled) kill(pid, SIGKILL);
    }
    close(pipe_ends[0]);
    int outcome = 0;
    waitpid(pid, &outcome, 0);
    EXPECT_EQ(outcome, OutcomeOf(death)) << "the child ended in another way";
    return made;
  }
  // Of waitpid.
  static int OutcomeOf(Death death) {
    switch (death) {
      case Death::kKilled:
        return SIGKILL;
      case Death::kAborts:
        return SIGABRT;
      case Death::kFaults:
        return SIGSEGV;
      case Death::kExits:
        return 0;
    }
    return -1;
  }
  static void Tell(int pipe_end) {
    if (write(pipe_end, "", 1) != 1) _exit(2);
    if (--steps_left_ > 0 || death_ == Death::kKilled) return;
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (const int number : {SIGABRT, SIGSEGV}) signal(number, SIG_DFL);  // sanitizers catch them
    if (death_ == Death::kAborts) abort();
    if (death_ == Death::kFaults) raise(SIGSEGV);
    _exit(0);
  }

  std::filesystem::path directory_;  // of the image and the kept memory
  std::string path_;
  uint64_t seed_ = 0;
  // Of the child.
  static inline Death death_ = Death::kKilled;
  static inline uint64_t steps_left_ = 0;
};

inline std::map<std::string, std::string> ContentsOf(FileSystem& fs) {
  std::map<std::string, std::string> contents;
  const auto found = model::Collect(fs, "");
  EXPECT_TRUE(found.ok()) << found.status().ToString();
  if (!found.ok()) return contents;
  for (const auto& [name, inode] : found->names) {
    if (found->files.contains(inode)) contents[name.substr(1)] = found->files.at(inode).bytes;
  }
  return contents;
}

// The names that a mount finds, which it ends.
inline std::set<std::string> NamesOf(const Result<std::unique_ptr<FileSystem>>& fs) {
  std::set<std::string> names;
  EXPECT_TRUE(fs.ok()) << fs.status().ToString();
  if (!fs.ok()) return names;
  for (const auto& [name, bytes] : ContentsOf(**fs)) names.insert(name);
  EXPECT_TRUE((*fs)->Unmount().ok());
  return names;
}

// `found` is what there was after some step, or half-way in the next one: an append may be there in part.
inline void ExpectBetween(const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& after,
                          const std::map<std::string, std::string>& found) {
  if (found == before || found == after) return;
  ASSERT_EQ(before.size(), after.size()) << "a name came or went in part";
  for (const auto& [name, bytes] : found) {
    ASSERT_TRUE(before.contains(name) && after.contains(name)) << name;
    EXPECT_TRUE(bytes.starts_with(before.at(name)))
        << name << " has " << bytes.size() << " bytes of " << before.at(name).size();
    EXPECT_TRUE(after.at(name).starts_with(bytes))
        << name << " has " << bytes.size() << " bytes of " << after.at(name).size();
  }
  EXPECT_EQ(found.size(), before.size());
}

}  // namespace isozone::torture
