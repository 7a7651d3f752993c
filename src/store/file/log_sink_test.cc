// Logs that are striped over zones of different groups: where their frames go, and what failures and power cuts leave.
#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "store/file/log_frame.h"
#include "store/file/stripe_test_util.h"
#include "store/io/write_gaps.h"

namespace isozone {
namespace {

class StripedLogTest : public StripeTest {
 protected:
  explicit StripedLogTest(uint64_t zone_size = kMiB) : StripeTest(/*max_active=*/32, zone_size) {}

  static MountOptions Options(uint32_t width = 3) {
    MountOptions options = Striped();
    options.write_buffer = 16 * kKiB;
    options.log_width = width;
    return options;
  }
  static constexpr CreateOptions kLog{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};
};

TEST_F(StripedLogTest, ALogThatIsWrittenFastIsSpreadOverGroups) {
  MountWithGroups(Options());
  const std::string content = Content(3000000);  // more than its zones hold
  ISOZONE_ASSERT_OK(volume_.WriteFile("/log", content, kLog));
  EXPECT_GE(ZonesOf("/log").size(), 4U);
  EXPECT_GE(GroupsOf("/log").size(), 3U);
  ExpectContent("/log", content);
  ISOZONE_ASSERT_OK(volume_.Remount(Options()));
  ExpectContent("/log", content);
  EXPECT_EQ(fs().Stat("/log")->size, content.size());
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(StripedLogTest, ALogLeavesHalfOfTheGroupsToOthers) {
  MountWithGroups(Options(kGroups));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/log", Content(1000000), kLog));  // no zone is filled
  EXPECT_EQ(GroupsOf("/log").size(), kGroups / 2);
}

TEST_F(StripedLogTest, ALogThatIsSyncedAtEveryWriteStaysInOneZoneThatKeepsUpWithIt) {
  MountWithGroups(Options(), /*zone_bandwidth=*/1'000 * kGiB);
  auto log = fs().Create("/log", kLog).value();
  for (int i = 0; i < 50; ++i) {
    ISOZONE_ASSERT_OK(log->Append(Bytes(Content(1000))));
    ISOZONE_ASSERT_OK(log->Sync());
  }
  EXPECT_EQ(ZonesOf("/log").size(), 1U);
}

TEST_F(StripedLogTest, ALogThatIsSyncedFasterThanAZoneIsProgrammedGoesOnInOthers) {
  MountWithGroups(Options(), /*zone_bandwidth=*/1);
  std::string content;
  auto log = fs().Create("/log", kLog).value();
  for (int i = 0; i < 150; ++i) {  // 9 units of 64 KiB
    const std::string bytes = Content(1000);
    ISOZONE_ASSERT_OK(log->Append(Bytes(bytes)));
    ISOZONE_ASSERT_OK(log->Sync());
    content += bytes;
    if (i == 15) {
      EXPECT_EQ(ZonesOf("/log").size(), 1U) << "within its first unit";
    }
  }
  EXPECT_EQ(ZonesOf("/log").size(), 3U);
  EXPECT_EQ(GroupsOf("/log").size(), 3U);
  volume_.device().CutPower();
  log.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  ExpectContent("/log", content);
}

TEST_F(StripedLogTest, OfAFrameOfManyAPowerCutLeavesABeginning) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_ = Random(seed);
    TestVolume volume(SmallGeometry(64, kMiB, 32));
    std::swap(volume, volume_);
    MountWithGroups(Options());
    std::string content;
    size_t synced = 0;
    auto log = fs().Create("/log", kLog).value();
    for (int i = 0; i < 30; ++i) {
      const std::string piece = Content(random_.Between(1, 40000));
      ISOZONE_ASSERT_OK(log->Append(Bytes(piece)));
      content += piece;
      if (!random_.Chance(0.2)) continue;
      ISOZONE_ASSERT_OK(log->Sync());
      synced = content.size();
    }
    volume_.device().CutPower();
    log.reset();
    ISOZONE_ASSERT_OK(volume_.CutAndRemount());
    const std::string found = volume_.ReadFile("/log").value();
    ASSERT_GE(found.size(), synced);
    ASSERT_TRUE(found == content.substr(0, found.size()));
    // The log goes on where it ended.
    auto more = fs().OpenForAppend("/log", kLog).value();
    const std::string tail = Content(100000);
    ISOZONE_ASSERT_OK(more->Append(Bytes(tail)));
    ISOZONE_ASSERT_OK(more->Close());
    more.reset();
    ExpectContent("/log", found + tail);
    volume_.Unmount();
    volume_.ExpectFsckClean();
  }
}

TEST_F(StripedLogTest, AFailedFrameIsRewrittenElsewhere) {
  MountWithGroups(Options());
  const std::string content = Content(200000), more = Content(400000);
  auto log = fs().Create("/log", kLog).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(log->Sync());
  const std::set<uint32_t> zones = ZonesOf("/log");
  ASSERT_EQ(zones.size(), 3U);
  for (const uint32_t zone : zones) volume_.device().SetZoneState(ZoneId(zone), ZoneState::kReadOnly);
  ISOZONE_ASSERT_OK(log->Append(Bytes(more)));
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  EXPECT_EQ(fs().state().Stats().write_retries, 3U);
  ExpectContent("/log", content + more);
  ISOZONE_ASSERT_OK(volume_.Remount(Options()));
  ExpectContent("/log", content + more);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(StripedLogTest, IsCutAndGoesOn) {
  MountWithGroups(Options());
  const std::string content = Content(500000), tail = Content(300000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/log", content, kLog));
  for (const size_t size : {400001UL, 123456UL}) {
    ISOZONE_ASSERT_OK(fs().Truncate("/log", size));
    ExpectContent("/log", content.substr(0, size));
    ISOZONE_ASSERT_OK(volume_.Remount(Options()));
    ExpectContent("/log", content.substr(0, size));
  }
  auto log = fs().OpenForAppend("/log", kLog).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(tail)));
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  ISOZONE_ASSERT_OK(volume_.Remount(Options()));
  ExpectContent("/log", content.substr(0, 123456) + tail);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// The seals are lost, and with them the knowledge of what was written since. So the log is what it was before.
TEST_F(StripedLogTest, ACutThatIsNotDurableDidNotHappen) {
  MountWithGroups(Options());
  const std::string content = Content(90000), tail = Content(50000);
  auto log = fs().Create("/log", kLog).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(log->Sync());
  ASSERT_GE(ZonesOf("/log").size(), 2U);
  ISOZONE_ASSERT_OK(log->Truncate(80000));
  ISOZONE_ASSERT_OK(log->Append(Bytes(tail)));
  ISOZONE_ASSERT_OK(log->WriteOut());
  volume_.device().CutPower();
  log.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  const auto found = volume_.ReadFile("/log");
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_TRUE(*found == content || content.starts_with(*found) ||
              (content.substr(0, 80000) + tail).starts_with(*found));
  EXPECT_GE(found->size(), 80000U);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(StripedLogTest, AnOfflineZoneIsAnErrorAndNotTheEnd) {
  MountWithGroups(Options());
  const std::string content = Content(90000);
  auto log = fs().Create("/log", kLog).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(log->Sync());
  const std::set<uint32_t> zones = ZonesOf("/log");
  ASSERT_EQ(zones.size(), 3U);
  volume_.device().CutPower();  // with all regions open
  log.reset();
  volume_.Unmount();
  volume_.OpenDevice()->SetZoneState(ZoneId(*zones.begin()), ZoneState::kOffline);
  ISOZONE_ASSERT_OK(volume_.Mount(Options()));
  EXPECT_TRUE(volume_.ReadFile("/log").status().Is(StatusCode::kIoError));
  EXPECT_FALSE(fs().OpenForAppend("/log", kLog).ok());
  ISOZONE_ASSERT_OK(fs().Unlink("/log"));
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Space().live, 0U);
}

TEST_F(StripedLogTest, ItsZonesAreInOrderForAReader) {
  MountWithGroups(Options());
  auto log = fs().Create("/log", kLog).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(Content(90000))));
  ISOZONE_ASSERT_OK(log->Sync());
  MountOptions options = Options();
  options.read_only = true;
  const auto reader = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), options);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ((*reader)->state().Space().free, fs().state().Space().free);
}

TEST_F(StripedLogTest, ItsSpaceComesBack) {
  MountWithGroups(Options());
  for (int i = 0; i < 30; ++i) {
    ISOZONE_ASSERT_OK(volume_.WriteFile("/log", Content(2000000), kLog));
    ISOZONE_ASSERT_OK(fs().Unlink("/log"));
  }
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Space().live, 0U);
}

// --- While users read ---

class LogBesideReadersTest : public StripedLogTest {
 protected:
  static constexpr uint64_t kZoneSize = 4 * kMiB;
  static constexpr uint64_t kSlice = 64 * kKiB;
  static constexpr uint64_t kUnit = 6 * kSlice;

  LogBesideReadersTest() : StripedLogTest(kZoneSize) {}

  static MountOptions Options(uint32_t width = 4) {
    MountOptions options = StripedLogTest::Options(width);
    options.write_buffer = kUnit;
    return options;
  }
  // The gap between writes is as long as it can be, and so are the pauses of a user who reads.
  void Mount(const MountOptions& options) {
    MountWithGroups(options, /*zone_bandwidth=*/kMiB);
    ISOZONE_ASSERT_OK(volume_.WriteFile("/read", Content(4096)));
  }
  // Frames of one slice, which only a unit that was cut has many of.
  size_t Slices(const std::string& path) {
    const std::vector<FileExtent> extents = Extents(path);
    return static_cast<size_t>(std::ranges::count(extents, kSlice - sizeof(LogFrameHeader), &FileExtent::length));
  }
  void ReadOften() {
    for (uint32_t i = 0; i < WriteGaps::kRun; ++i) ISOZONE_ASSERT_OK(volume_.ReadFile("/read").status());
  }
};

// A user whose reads are a pause apart is none, so on a busy machine it may take several logs.
TEST_F(LogBesideReadersTest, AUnitGoesToManyZones) {
  Mount(Options());
  const std::string content = Content(8 * kUnit);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/alone", content, kLog));
  EXPECT_EQ(Slices("/alone"), 0U);
  bool cut = false;
  for (int i = 0; i < 100 && !cut; ++i) {
    const std::string path = "/log" + std::to_string(i);
    ReadOften();
    ISOZONE_ASSERT_OK(volume_.WriteFile(path, content, kLog));
    ExpectContent(path, content);
    cut = Slices(path) >= 6 && GroupsOf(path).size() == 4;
    ISOZONE_ASSERT_OK(fs().Unlink(path));
  }
  EXPECT_TRUE(cut);
}

TEST_F(LogBesideReadersTest, ALogThatIsSyncedIsNotCut) {
  Mount(Options());
  auto log = fs().Create("/log", kLog).value();
  for (int i = 0; i < 20; ++i) {
    ReadOften();
    ISOZONE_ASSERT_OK(log->Append(Bytes(Content(kUnit / 2))));
    ISOZONE_ASSERT_OK(log->Sync());
  }
  EXPECT_EQ(Slices("/log"), 0U);
  ISOZONE_ASSERT_OK(log->Close());
}

// What waits is read from memory, is there after every Sync and Close, and follows in order, whatever zones fail.
TEST_F(LogBesideReadersTest, IsWholeWhateverHappens) {
  size_t slices = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_ = Random(seed);
    TestVolume volume(SmallGeometry(64, kZoneSize, /*max_active=*/seed % 2 == 0 ? 32 : 10));
    std::swap(volume, volume_);
    Mount(Options());
    std::string content;
    size_t synced = 0;
    auto log = fs().Create("/log", kLog).value();
    for (int i = 0; i < 40; ++i) {
      if (random_.Chance(0.7)) ReadOften();
      const std::string piece = Content(random_.Between(1, 200'000));
      ISOZONE_ASSERT_OK(log->Append(Bytes(piece)));
      content += piece;
      if (random_.Chance(0.2)) ExpectContent("/log", content);
      if (random_.Chance(0.05)) ISOZONE_ASSERT_OK(log->WriteOut());
      if (random_.Chance(0.05) && !ZonesOf("/log").empty()) {
        volume_.device().SetZoneState(ZoneId(*ZonesOf("/log").rbegin()), ZoneState::kReadOnly);
      }
      if (!random_.Chance(0.05)) continue;
      ISOZONE_ASSERT_OK(log->Sync());
      synced = content.size();
    }
    const bool cut = random_.Chance(0.5);
    if (cut) {
      volume_.device().CutPower();
      log.reset();
      ISOZONE_ASSERT_OK(volume_.CutAndRemount(Options()));
    } else {
      ISOZONE_ASSERT_OK(log->Close());
      log.reset();
      ISOZONE_ASSERT_OK(volume_.Remount(Options()));
    }
    const std::string found = volume_.ReadFile("/log").value();
    slices += Slices("/log");
    ASSERT_GE(found.size(), cut ? synced : content.size());
    ASSERT_TRUE(found == content.substr(0, found.size()));
    volume_.Unmount();
    volume_.ExpectFsckClean();
  }
  EXPECT_GT(slices, 0U);
}

TEST_F(LogBesideReadersTest, WriteOutStartsWhatWaits) {
  Mount(Options());
  auto log = fs().Create("/log", kLog).value();
  const auto written = [&] { return fs().state().Stats().by_class[static_cast<size_t>(IoClass::kWal)].bytes_written; };
  for (int i = 0; i < 60; ++i) {
    ReadOften();
    ISOZONE_ASSERT_OK(log->Append(Bytes(Content(kSlice - sizeof(LogFrameHeader)))));
  }
  ISOZONE_ASSERT_OK(log->WriteOut());
  const uint64_t size = log->size();
  while (written() < size) std::this_thread::yield();
  ISOZONE_ASSERT_OK(log->Close());
}

TEST_F(LogBesideReadersTest, WhatWaitsIsLostWithTheErrorThatTheWriterGets) {
  Mount(Options());
  auto log = fs().Create("/log", kLog).value();
  for (int i = 0; i < 5; ++i) {
    ReadOften();
    ISOZONE_ASSERT_OK(log->Append(Bytes(Content(50'000))));
  }
  volume_.device().CutPower();
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = log->Append(Bytes(Content(50'000)));
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(log->Sync().ok());
  EXPECT_FALSE(log->Close().ok());
}

}  // namespace
}  // namespace isozone
