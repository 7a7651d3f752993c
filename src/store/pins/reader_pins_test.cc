#include "store/pins/reader_pins.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/pins/pinning_readers.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

constexpr uint32_t kZones = 100;
const std::string kUuid = "0b1c2d3e-0000-4000-8000-0123456789ab";
using Zones = std::vector<ZoneId>;

class ReaderPinsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("isozone-pins-{}", getpid());
    std::filesystem::create_directories(directory_);
    const std::string image = directory_ + "/image";
    std::ofstream(image) << "a device";
    device_ = PageOwner::Of(image).value();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::shared_ptr<ReaderPins> Make(const std::string& uuid = kUuid) const {
    auto pins = ReaderPins::Make(device_, directory_, uuid, kZones);
    EXPECT_TRUE(pins.ok()) << pins.status().ToString();
    return *std::move(pins);
  }
  Zones Pinned(uint64_t most = kZones) const {
    Zones all;
    for (uint32_t i = 0; i < kZones; ++i) all.emplace_back(i);
    return FindPinned(device_, directory_, kUuid, kZones, all, most);
  }
  // The file of the only reader.
  std::optional<std::string> FindFile() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().filename().string().starts_with(PinsPrefix(device_))) return entry.path();
    }
    return std::nullopt;
  }
  // Names of files beside the image.
  size_t CountFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {})) - 1;
  }

  std::string directory_;
  PageOwner device_;
};

TEST_F(ReaderPinsTest, WhatIsPinnedIsSeenUntilItIsLetGo) {
  const auto reader = Make();
  EXPECT_TRUE(Pinned().empty());
  ZonePins first(reader);
  first.Add(Zones{ZoneId(3), ZoneId(99)});
  {
    ZonePins second(reader);
    second.Add(Zones{ZoneId(3), ZoneId(4)});
    EXPECT_EQ(Pinned(), (Zones{ZoneId(3), ZoneId(4), ZoneId(99)}));
  }
  EXPECT_EQ(Pinned(), (Zones{ZoneId(3), ZoneId(99)}));
  first.Add(Zones{ZoneId(3), ZoneId(50)});
  EXPECT_TRUE(first.Covers(Zones{ZoneId(50), ZoneId(99)}));
  EXPECT_FALSE(first.Covers(Zones{ZoneId(51)}));
  first.KeepOnly(Zones{ZoneId(50)});
  EXPECT_EQ(Pinned(), (Zones{ZoneId(50)}));
  EXPECT_TRUE(reader->in_use());
  first = ZonePins();
  EXPECT_TRUE(Pinned().empty());
  EXPECT_FALSE(reader->in_use());
}

TEST_F(ReaderPinsTest, OnlyReadersOfTheFileSystemCount) {
  const auto other = Make("another");
  ZonePins pins(other);
  pins.Add(Zones{ZoneId(3)});
  std::ofstream(fmt::format("{}/{}1-1", directory_, PinsPrefix(device_))) << std::string(10'000, '\1');
  EXPECT_TRUE(Pinned().empty());
}

TEST_F(ReaderPinsTest, AReaderThatWasKilledHoldsNothingAndLeavesNothing) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto reader = ReaderPins::Make(device_, directory_, kUuid, kZones);
    ZonePins pins(reader.value());
    pins.Add(Zones{ZoneId(7)});
    (void)!write(ready[1], "r", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Pinned(), (Zones{ZoneId(7)}));
  EXPECT_EQ(FindPinningReaders(device_, directory_, kUuid, kZones)->front().process.pid, static_cast<uint32_t>(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Pinned().empty());
  EXPECT_EQ(CountFiles(), 0U);
}

TEST_F(ReaderPinsTest, TheReaderThatHoldsMostIsGivenUp) {
  const auto modest = Make();
  auto greedy = Make();
  ZonePins few(modest);
  few.Add(Zones{ZoneId(1), ZoneId(2)});
  ZonePins many(greedy);
  many.Add(Zones{ZoneId(2), ZoneId(3), ZoneId(4)});
  EXPECT_EQ(Pinned(4).size(), 4U);
  EXPECT_FALSE(greedy->is_unseen());
  EXPECT_EQ(Pinned(3), (Zones{ZoneId(1), ZoneId(2)}));
  EXPECT_TRUE(greedy->is_unseen());
  EXPECT_FALSE(modest->is_unseen());
  EXPECT_EQ(Pinned(4), (Zones{ZoneId(1), ZoneId(2)}));
  // Another name is not given up.
  const auto again = Make();
  many = ZonePins(again);
  many.Add(Zones{ZoneId(3)});
  EXPECT_FALSE(again->is_unseen());
  greedy = nullptr;
  EXPECT_EQ(Pinned(4), (Zones{ZoneId(1), ZoneId(2), ZoneId(3)}));
  EXPECT_EQ(CountFiles(), 2U);
}

TEST_F(ReaderPinsTest, NobodyIsGivenUpByAUserWhoMayNotWriteTheDevice) {
  const auto reader = Make();
  struct stat file {};
  ASSERT_EQ(::stat((directory_ + "/image").c_str(), &file), 0);
  const std::string path = directory_ + "/revoked";
  std::ofstream(path) << "";
  if (::chown(path.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  EXPECT_FALSE(IsRevoked(path, file, device_));
  PageOwner shared = device_;
  shared.mode = 0660;
  shared.gid = 12345;
  EXPECT_TRUE(IsRevoked(path, file, shared));
}

TEST_F(ReaderPinsTest, ANameThatAnotherContainerHasIsPassedBy) {
  for (int i = 1; i <= 100; ++i) {
    std::ofstream(fmt::format("{}/{}{}-{}", directory_, PinsPrefix(device_), getpid(), i)) << "another";
  }
  const auto reader = Make();
  ZonePins pins(reader);
  pins.Add(Zones{ZoneId(3)});
  EXPECT_FALSE(reader->is_unseen());
  EXPECT_EQ(Pinned(), (Zones{ZoneId(3)}));
}

TEST_F(ReaderPinsTest, AReaderWhoseFileWasRemovedKnowsIt) {
  const auto reader = Make();
  EXPECT_FALSE(reader->is_unseen());
  std::filesystem::remove(*FindFile());
  EXPECT_TRUE(reader->is_unseen());
}

TEST_F(ReaderPinsTest, TheWriterMayBeAnotherUser) {
  device_.mode = 0600;
  const auto reader = Make();
  struct stat file {};
  ASSERT_EQ(::stat(FindFile()->c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0444U);
}

TEST_F(ReaderPinsTest, WithoutADirectoryNothingIsPinned) {
  EXPECT_FALSE(ReaderPins::Make(device_, directory_ + "/none", kUuid, kZones).ok());
  EXPECT_TRUE(FindPinned(device_, directory_ + "/none", kUuid, kZones, Zones{ZoneId(1)}, 1).empty());
}

}  // namespace
}  // namespace isozone
