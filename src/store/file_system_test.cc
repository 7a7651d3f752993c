#include "store/file_system.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/extent_list.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/recovery.h"
#include "store/mount/format_device.h"
#include "store/mount/free_zones.h"
#include "store/mount/mount_table.h"
#include "testing/manual_clock.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr CreateOptions kLogFile{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};
constexpr CreateOptions kSmallFile{FileKind::kSmall, IoClass::kOther, Lifetime::kNotSet, 0};

class FileSystemTest : public testing::Test {
 protected:
  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }
  FileSystem& fs() { return volume_.fs(); }

  ManualClock clock_;  // the clock of those mounts that are given it
  TestVolume volume_;
  Random random_{42};
};

class FileSystemKindTest : public FileSystemTest, public testing::WithParamInterface<FileKind> {
 protected:
  CreateOptions Options() const { return {GetParam(), IoClass::kOther, Lifetime::kMedium, 0}; }
};
INSTANTIATE_TEST_SUITE_P(Kinds, FileSystemKindTest, testing::Values(FileKind::kData, FileKind::kLog, FileKind::kSmall),
                         [](const auto& info) { return std::string(FileKindName(info.param)); });

TEST_P(FileSystemKindTest, ReadsBackWhatWasWrittenAcrossZonesAndMounts) {
  const std::string content = RandomBytes(random_, 3 * kMiB + 123);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content, Options()));
  EXPECT_EQ(volume_.ReadFile("/f").value(), content);
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), content);
  const FileAttributes attributes = fs().Stat("/f").value();
  EXPECT_EQ(attributes.size, content.size());
  EXPECT_EQ(attributes.kind, GetParam());
  EXPECT_EQ(attributes.lifetime, Lifetime::kMedium);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_P(FileSystemKindTest, AppendsAreReadableThroughOtherHandlesBeforeTheyReachTheDevice) {
  auto writer = fs().Create("/f", Options()).value();
  auto reader = fs().OpenForRead("/f").value();
  std::string content;
  for (int i = 0; i < 200; ++i) {
    const std::string piece = RandomBytes(random_, 1 + random_.Below(20000));
    ISOZONE_ASSERT_OK(writer->Append(Bytes(piece)));
    ISOZONE_ASSERT_OK(writer->Flush());
    content += piece;
    ASSERT_EQ(reader->size(), content.size());
    const uint64_t at = random_.Below(content.size());
    std::string buffer(content.size() - at, '\0');
    ASSERT_EQ(reader->Read(at, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead).value(), buffer.size());
    ASSERT_EQ(buffer, content.substr(at));
    if (i % 37 == 0) ISOZONE_ASSERT_OK(writer->Sync());
  }
  EXPECT_EQ(fs().Stat("/f")->size, content.size());
}

TEST_P(FileSystemKindTest, SyncedBytesSurviveAPowerCut) {
  auto writer = fs().Create("/f", Options()).value();
  std::string content;
  for (int i = 0; i < 50; ++i) {
    const std::string piece = RandomBytes(random_, 1 + random_.Below(30000));
    ISOZONE_ASSERT_OK(writer->Append(Bytes(piece)));
    ISOZONE_ASSERT_OK(writer->Sync());
    content += piece;
  }
  volume_.device().CutPower();
  writer.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), content);
}

TEST_P(FileSystemKindTest, ReopensForAppend) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", "hello ", Options()));
  ISOZONE_ASSERT_OK(volume_.Remount());
  auto writer = fs().OpenForAppend("/f", Options()).value();
  EXPECT_EQ(writer->size(), 6u);
  EXPECT_EQ(fs().OpenForAppend("/f", Options()).status().code(), StatusCode::kBusy);
  ISOZONE_ASSERT_OK(writer->Append(Bytes("world")));
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(volume_.ReadFile("/f").value(), "hello world");
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), "hello world");
}

// This is how RocksDB re-uses a log: it is renamed and created anew while the writer of the old one is not yet closed.
TEST_P(FileSystemKindTest, IsReplacedWhileItIsWritten) {
  const std::string old_content = RandomBytes(random_, 300000), new_content = RandomBytes(random_, 200000);
  auto old_writer = fs().Create("/old", Options()).value();
  ISOZONE_ASSERT_OK(old_writer->Append(Bytes(old_content)));
  ISOZONE_ASSERT_OK(fs().Rename("/old", "/f"));
  auto writer = fs().Create("/f", Options()).value();
  EXPECT_EQ(fs().Stat("/f")->size, 0u);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(new_content)));
  ISOZONE_ASSERT_OK(old_writer->Append(Bytes(old_content)));
  ISOZONE_ASSERT_OK(old_writer->Sync());
  ISOZONE_ASSERT_OK(old_writer->Close());
  old_writer.reset();
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(volume_.ReadFile("/f").value(), new_content);
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), new_content);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_P(FileSystemKindTest, TruncatesToEverySide) {
  const std::string content = RandomBytes(random_, 100000);
  auto writer = fs().Create("/f", Options()).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(writer->Truncate(70001));
  ISOZONE_ASSERT_OK(writer->Append(Bytes("tail")));
  ISOZONE_ASSERT_OK(writer->Truncate(70010));
  ISOZONE_ASSERT_OK(writer->Sync());
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  const std::string expected = content.substr(0, 70001) + "tail" + std::string(5, '\0');
  EXPECT_EQ(volume_.ReadFile("/f").value(), expected);
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), expected);
  ISOZONE_ASSERT_OK(fs().Truncate("/f", 1));
  EXPECT_EQ(volume_.ReadFile("/f").value(), expected.substr(0, 1));
  ISOZONE_ASSERT_OK(fs().Truncate("/f", 0));
  EXPECT_EQ(volume_.ReadFile("/f").value(), "");
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_P(FileSystemKindTest, AnOpenFileOutlivesItsName) {
  const std::string content = RandomBytes(random_, 300000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content, Options()));
  {
    auto reader = fs().OpenForRead("/f").value();
    ISOZONE_ASSERT_OK(fs().Unlink("/f"));
    EXPECT_TRUE(fs().Stat("/f").status().Is(StatusCode::kNotFound));
    ISOZONE_ASSERT_OK(fs().state().Settle());
    std::string buffer(content.size(), '\0');
    ASSERT_EQ(reader->Read(0, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead).value(), buffer.size());
    EXPECT_EQ(buffer, content);
    EXPECT_GT(fs().state().Space().live, 0u);
  }
  EXPECT_EQ(fs().state().Space().live, 0u);
}

TEST_P(FileSystemKindTest, SpaceComesBackAfterUnlink) {
  const uint64_t before = fs().state().Space().free;
  for (int round = 0; round < 20; ++round) {
    auto writer = fs().Create("/f", Options()).value();
    const std::string piece = RandomBytes(random_, 256 * kKiB);
    for (int i = 0; i < 40; ++i) ISOZONE_ASSERT_OK(writer->Append(Bytes(piece)));
    if (round % 2 == 0) ISOZONE_ASSERT_OK(fs().Unlink("/f"));
    ISOZONE_ASSERT_OK(writer->Close());
    writer.reset();
    if (round % 2 == 1) ISOZONE_ASSERT_OK(fs().Unlink("/f"));
  }
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Space().live, 0u);
  EXPECT_GE(fs().state().Space().free + 4 * volume_.device().geometry().zone_capacity, before);
}

TEST_P(FileSystemKindTest, TimesOfFilesAreThoseOfTheClockOfTheMount) {
  constexpr uint64_t kBegin = 1'000'000'000;  // in 2001
  volume_.Unmount();
  clock_.SetWall(kBegin);
  ISOZONE_ASSERT_OK(volume_.Mount({}, clock_));
  const auto modified = [this] { return fs().Stat("/f").value().modified_s; };

  auto writer = fs().Create("/f", Options()).value();
  EXPECT_EQ(modified(), kBegin);
  clock_.SetWall(kBegin + 10);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(RandomBytes(random_, 100 * kKiB))));
  ISOZONE_ASSERT_OK(writer->Sync());
  EXPECT_EQ(modified(), kBegin + 10);
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  clock_.SetWall(kBegin + 20);
  ISOZONE_ASSERT_OK(fs().Truncate("/f", 50 * kKiB));
  EXPECT_EQ(modified(), kBegin + 20);
  clock_.SetWall(kBegin - 30);  // as an administrator may do
  if (GetParam() != FileKind::kLog) {
    ISOZONE_ASSERT_OK(fs().Overwrite("/f", 0, Bytes("new")));
    EXPECT_EQ(modified(), kBegin - 30);
  }
  const uint64_t last = modified();
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(modified(), last);
}

TEST_F(FileSystemTest, ASyncOfALogIsOneDeviceWrite) {
  auto writer = fs().Create("/000001.log", kLogFile).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes("first")));
  ISOZONE_ASSERT_OK(writer->Sync());
  const Figures before = fs().state().Stats();
  for (int i = 0; i < 10; ++i) {
    ISOZONE_ASSERT_OK(writer->Append(Bytes("record")));
    ISOZONE_ASSERT_OK(writer->Sync());
  }
  const Figures after = fs().state().Stats();
  EXPECT_EQ(after.host_bytes_written - before.host_bytes_written, 10u * 4096);
  EXPECT_EQ(after.journal_commits, before.journal_commits);
}

TEST_F(FileSystemTest, ALogThatIsNeverSyncedIsFoundAsFarAsItIsOnTheDevice) {
  auto writer = fs().Create("/000001.log", kLogFile).value();
  Random random(1);
  const std::string content = RandomBytes(random, 3 * MountOptions().write_buffer);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  MountOptions options;
  options.read_only = true;
  const auto found_size = [&]() -> uint64_t {
    const auto follower = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), options).value();
    const auto found = follower->Stat("/000001.log");
    return found.ok() ? found->size : 0;
  };
  while (found_size() < MountOptions().write_buffer / 2) std::this_thread::yield();
}

// Data has all active zones that it can have, so that a third log takes over the zone of another one, which goes on in
// a zone of its own. No frame is lost, whichever log wrote last in which zone.
TEST_F(FileSystemTest, LogsThatTookOverAZoneAreWholeAfterAPowerCut) {
  std::vector<std::unique_ptr<FileWriter>> files;
  for (int i = 0; i < 2 * kLifetimeCount; ++i) {
    const auto lifetime = static_cast<Lifetime>(i % kLifetimeCount);
    files.push_back(fs().Create(fmt::format("/data{}", i), {FileKind::kData, IoClass::kFlush, lifetime, 0}).value());
    ISOZONE_ASSERT_OK(files.back()->Append(Bytes(RandomBytes(random_, 100'000))));
    ISOZONE_ASSERT_OK(files.back()->Sync());
  }
  constexpr int kLogs = 4;
  std::vector<std::unique_ptr<FileWriter>> logs;
  std::vector<std::string> contents(kLogs);
  for (int i = 0; i < kLogs; ++i) logs.push_back(fs().Create(fmt::format("/{}.log", i), kLogFile).value());
  for (int round = 0; round < 20; ++round) {
    const size_t log = round < kLogs ? round : random_.Below(kLogs);
    const std::string record = RandomBytes(random_, 1 + random_.Below(20'000));
    contents[log] += record;
    ISOZONE_ASSERT_OK(logs[log]->Append(Bytes(record)));
    ISOZONE_ASSERT_OK(logs[log]->Sync());
  }
  const std::vector<ZoneView> zones = fs().state().Zones();
  EXPECT_TRUE(std::ranges::any_of(zones, [&](const ZoneView& zone) {
    return zone.use == ZoneUse::kLog && fs().state().FilesIn(zone.device.zone)->size() > 1;
  }));
  volume_.device().CutPower();
  for (auto& writer : logs) (void)writer->Close();
  for (auto& writer : files) (void)writer->Close();
  logs.clear();
  files.clear();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  for (int i = 0; i < kLogs; ++i) EXPECT_EQ(volume_.ReadFile(fmt::format("/{}.log", i)).value(), contents[i]);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(FileSystemTest, NamesFollowPosix) {
  ISOZONE_ASSERT_OK(fs().CreateDirectories("/db/sub/"));
  EXPECT_TRUE(fs().CreateDirectory("/db").Is(StatusCode::kAlreadyExists));
  EXPECT_TRUE(fs().CreateDirectory("/no/such").Is(StatusCode::kNotFound));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/db/a", "a", kSmallFile));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/db/b", "b", kSmallFile));
  EXPECT_TRUE(fs().Create("/db", kSmallFile).status().Is(StatusCode::kIsDirectory));
  EXPECT_TRUE(fs().Create("/db/a/x", kSmallFile).status().Is(StatusCode::kNotDirectory));
  EXPECT_TRUE(fs().Unlink("/db").Is(StatusCode::kIsDirectory));
  EXPECT_TRUE(fs().RemoveDirectory("/db").Is(StatusCode::kNotEmpty));
  EXPECT_TRUE(fs().RemoveDirectory("/db/a").Is(StatusCode::kNotDirectory));
  EXPECT_TRUE(fs().Rename("/db", "/db/sub/db").Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(fs().Rename("/db", "/db/sub").Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(fs().Rename("/db/sub", "/db").Is(StatusCode::kNotEmpty));
  EXPECT_TRUE(fs().Rename("/db/sub", "/db/a").Is(StatusCode::kNotDirectory));
  EXPECT_TRUE(fs().Rename("/db/a", "/db/sub").Is(StatusCode::kIsDirectory));
  EXPECT_TRUE(fs().Create("relative", kSmallFile).status().Is(StatusCode::kInvalidArgument));

  ISOZONE_ASSERT_OK(fs().Link("/db/a", "/db/hard"));
  EXPECT_TRUE(fs().Link("/db/a", "/db/b").Is(StatusCode::kAlreadyExists));
  EXPECT_EQ(fs().Stat("/db/a")->links, 2u);
  EXPECT_EQ(fs().Stat("/db/a")->inode, fs().Stat("/db/hard")->inode);
  ISOZONE_ASSERT_OK(fs().Rename("/db/a", "/db/b"));  // replaces
  EXPECT_EQ(volume_.ReadFile("/db/b").value(), "a");
  ISOZONE_ASSERT_OK(fs().CreateDirectory("/moved"));
  ISOZONE_ASSERT_OK(fs().Rename("/db", "/moved"));  // replaces, as it is empty
  EXPECT_TRUE(fs().Stat("/db").status().Is(StatusCode::kNotFound));
  ISOZONE_ASSERT_OK(volume_.Remount());

  std::vector<std::string> names;
  const auto entries = fs().List("/moved").value();
  for (const auto& entry : entries) names.push_back(entry.name);
  EXPECT_THAT(names, testing::ElementsAre("b", "hard", "sub"));
  EXPECT_EQ(volume_.ReadFile("/moved/hard").value(), "a");
}

TEST_F(FileSystemTest, MetadataIsDurableAfterSyncMetadata) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/dbtmp", "MANIFEST-000001\n", kSmallFile));
  ISOZONE_ASSERT_OK(fs().Rename("/dbtmp", "/CURRENT"));
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(volume_.ReadFile("/CURRENT").value(), "MANIFEST-000001\n");
  EXPECT_TRUE(fs().Stat("/dbtmp").status().Is(StatusCode::kNotFound));
}

TEST_F(FileSystemTest, OverwritesInPlaceForReaders) {
  std::string content = RandomBytes(random_, 50000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/sst", content));
  auto reader = fs().OpenForRead("/sst").value();
  ISOZONE_ASSERT_OK(fs().Overwrite("/sst", 12345, Bytes("12345678")));
  content.replace(12345, 8, "12345678");
  ISOZONE_ASSERT_OK(fs().Overwrite("/sst", 49998, Bytes("beyond")));
  content.replace(49998, 2, "beyond");
  EXPECT_EQ(volume_.ReadFile("/sst").value(), content);
  EXPECT_EQ(reader->size(), content.size());
  reader.reset();
  EXPECT_TRUE(fs().Overwrite("/sst", 60000, Bytes("x")).Is(StatusCode::kInvalidArgument));
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(volume_.ReadFile("/sst").value(), content);
  ISOZONE_ASSERT_OK(fs().Unlink("/sst"));
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Space().live, 0u);
}

TEST_F(FileSystemTest, FailsWithNoSpaceAndGoesOnAfterDeletes) {
  const std::string piece = RandomBytes(random_, 128 * kKiB);
  Status status;
  int files = 0;
  while (status.ok() && files < 10000) status = volume_.WriteFile("/f" + std::to_string(files++), piece);
  ASSERT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
  EXPECT_GT(files, 64);  // most of the device is used
  EXPECT_TRUE(fs().state().read_only_reason().empty());
  for (int i = 0; i < files; ++i) {
    const Status removed = fs().Unlink("/f" + std::to_string(i));
    EXPECT_TRUE(removed.ok() || removed.Is(StatusCode::kNotFound)) << removed.ToString();
  }
  for (int i = 0; i < 64; ++i) ISOZONE_ASSERT_OK(volume_.WriteFile("/again" + std::to_string(i), piece));
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(FileSystemTest, AFailedWriteMovesTheTailToAnotherZone) {
  const std::string content = RandomBytes(random_, 200000);
  auto writer = fs().Create("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(writer->Sync());
  ZoneId zone;
  for (const ZoneView& view : fs().state().Zones()) {
    if (view.writing && view.use == ZoneUse::kData) zone = view.device.zone;
  }
  volume_.device().SetZoneState(zone, ZoneState::kReadOnly);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(writer->Sync());
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(fs().state().Stats().write_retries, 1u);
  EXPECT_EQ(volume_.ReadFile("/f").value(), content + content);
  ISOZONE_ASSERT_OK(volume_.Remount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), content + content);
}

TEST_F(FileSystemTest, AReadErrorIsReturnedAndDoesNotLatch) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", "content"));
  ZoneId zone;
  ISOZONE_ASSERT_OK(fs().state().VisitFiles([&](const FileDetails& file) {
    if (!file.extents.empty()) zone = volume_.device().geometry().ZoneOf(file.extents.front().device_offset);
  }));
  volume_.device().FailNext(DeviceOp::kRead, zone, DeviceStatus::kUnrecoveredReadError);
  EXPECT_TRUE(volume_.ReadFile("/f").status().Is(StatusCode::kIoError));
  EXPECT_TRUE(fs().state().read_only_reason().empty());
  ISOZONE_ASSERT_OK(volume_.WriteFile("/g", "more"));
}

TEST_F(FileSystemTest, AReadOnlyMountKnowsTheSpaceOfASecondAgo) {
  ManualClock clock;
  MountOptions options;
  options.read_only = true;
  const auto follower = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), options, clock).value();
  const SpaceInfo before = follower->state().Space();
  ISOZONE_ASSERT_OK(volume_.WriteFile("/a", std::string(kMiB, 'x')));
  EXPECT_EQ(follower->state().Space().live, before.live);
  clock.Advance(kSecondNs);
  EXPECT_EQ(follower->state().Space().live, before.live + kMiB);
  EXPECT_LE(follower->state().Space().free + kMiB, before.free);
  ISOZONE_ASSERT_OK(fs().Unlink("/a"));
  ISOZONE_ASSERT_OK(fs().state().Settle());
  clock.Advance(kSecondNs);
  EXPECT_EQ(follower->state().Space().live, before.live);
  EXPECT_EQ(follower->state().Space().free, fs().state().Space().free);
}

// A change of one file costs nothing of another that is open, however many extents it has.
TEST_F(FileSystemTest, ARefreshTakesTheOpenFilesThatHaveChanged) {
  constexpr uint64_t kBlock = 4096;
  constexpr uint64_t kBlocks = 64;
  Random random(1);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/fragmented", RandomBytes(random, kBlocks * kBlock)));
  for (uint64_t i = 0; i < kBlocks; i += 2) {
    ISOZONE_ASSERT_OK(fs().Overwrite("/fragmented", i * kBlock, Bytes(RandomBytes(random, kBlock))));
  }
  MountOptions options;
  options.read_only = true;
  auto follower = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), options).value();
  const auto reader = follower->OpenForRead("/fragmented").value();
  ISOZONE_ASSERT_OK(volume_.WriteFile("/b", "two"));
  const uint64_t steps = ExtentList::steps();
  EXPECT_EQ(follower->Stat("/b")->size, 3u);
  EXPECT_LT(ExtentList::steps() - steps, kBlocks / 2);
  ISOZONE_ASSERT_OK(fs().Overwrite("/fragmented", kBlock, Bytes("new")));
  std::string text(3, '\0');
  EXPECT_EQ(reader->Read(kBlock, std::as_writable_bytes(std::span(text)), IoClass::kUserRead).value(), 3u);
  EXPECT_EQ(text, "new");
}

TEST_F(FileSystemTest, AReadOnlyMountFollowsTheWriter) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/a", "one"));
  auto log = fs().Create("/log", kLogFile).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes("first,")));
  ISOZONE_ASSERT_OK(log->Sync());

  MountOptions options;
  options.read_only = true;
  auto follower = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), options).value();
  EXPECT_EQ(follower->Stat("/a")->size, 3u);
  auto reader = follower->OpenForRead("/log").value();
  const auto read_all = [&] {
    std::string text(100, '\0');
    const auto n = reader->Read(0, std::as_writable_bytes(std::span(text)), IoClass::kUserRead);
    text.resize(n.ok() ? *n : 0);
    return text;
  };
  EXPECT_EQ(read_all(), "first,");
  ISOZONE_ASSERT_OK(log->Append(Bytes("second")));
  ISOZONE_ASSERT_OK(log->Sync());
  EXPECT_EQ(read_all(), "first,second");
  ISOZONE_ASSERT_OK(log->Truncate(6));
  ISOZONE_ASSERT_OK(log->Sync());
  EXPECT_EQ(read_all(), "first,");
  ISOZONE_ASSERT_OK(volume_.WriteFile("/b", "two"));
  EXPECT_EQ(follower->Stat("/b")->size, 3u);
  auto gone = follower->OpenForRead("/a").value();
  ISOZONE_ASSERT_OK(fs().Unlink("/a"));
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  std::string text(3, '\0');
  EXPECT_TRUE(
      gone->Read(0, std::as_writable_bytes(std::span(text)), IoClass::kUserRead).status().Is(StatusCode::kIoError));
  EXPECT_TRUE(follower->Create("/c", kSmallFile).status().Is(StatusCode::kReadOnly));
  EXPECT_TRUE(follower->Unlink("/b").Is(StatusCode::kReadOnly));
}

TEST_F(FileSystemTest, ALogThatIsWrittenToWhileItIsOpenedIsSeenWhole) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/log", "", kLogFile));
  std::atomic<uint64_t> written = 0;
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      auto log = fs().OpenForAppend("/log", kLogFile);
      ISOZONE_EXPECT_OK(log.status());
      if (!log.ok()) break;
      ISOZONE_EXPECT_OK((*log)->Append(Bytes("record")));
      ISOZONE_EXPECT_OK((*log)->Close());
      log->reset();
      written += 6;
    }
    written += UINT64_MAX / 2;
  });
  while (written < UINT64_MAX / 2) {
    const auto reader = fs().OpenForRead("/log");
    const uint64_t before = written % (UINT64_MAX / 2);
    const auto found = fs().Stat("/log");
    ISOZONE_EXPECT_OK(reader.status());
    EXPECT_GE(found.ok() ? found->size : 0, before);
  }
  writer.join();
}

// Anything that is written in that case would lie behind what is torn in a log, and would look like damage after the
// next power cut.
TEST_F(FileSystemTest, WhereALogCannotBeSealedForGoodNothingIsWritten) {
  auto log = fs().Create("/log", kLogFile).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes("record")));
  ISOZONE_ASSERT_OK(log->Sync());
  const std::vector<ZoneView> zones = fs().state().Zones();
  volume_.device().CutPower();
  log.reset();
  volume_.Unmount();
  {
    const auto device = volume_.OpenDevice();
    for (const ZoneView& zone : zones) {
      const bool keeps = zone.use == ZoneUse::kLog;
      if (!keeps) device->SetZoneState(zone.device.zone, ZoneState::kReadOnly);
    }
  }
  const Status status = volume_.Mount();
  EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
  EXPECT_NE(status.message().find("read_only=on"), std::string::npos) << status.ToString();
  MountOptions options;
  options.read_only = true;
  ISOZONE_ASSERT_OK(volume_.Mount(options));
  EXPECT_EQ(*volume_.ReadFile("/log"), "record");
}

TEST(MountShared, WhoIsRefusedForOtherOptionsMayBeTheLastUser) {
  const MemoryImage image = EmulatedDevice::CreateInMemory(SmallGeometry()).value();
  {
    const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
    ISOZONE_ASSERT_OK(FormatDevice(*device, {"test", false}));
  }
  const auto come_and_go = [&](std::string_view options) {
    for (int i = 0; i < 500; ++i) {
      const Status status = MountShared(fmt::format("emu:{}?{}", image.path(), options), /*read_only=*/false).status();
      EXPECT_TRUE(status.ok() || status.Is(StatusCode::kInvalidArgument)) << status.ToString();
    }
  };
  std::thread other([&] { come_and_go("log_width=3"); });
  come_and_go("log_width=2");
  other.join();
}

TEST(MountShared, WhoJoinsNamesTheSameOptionsOfTheDevice) {
  const MemoryImage image = EmulatedDevice::CreateInMemory(SmallGeometry()).value();
  {
    const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
    ISOZONE_ASSERT_OK(FormatDevice(*device, {"test", false}));
  }
  const auto mount = [&](std::string_view options) {
    return MountShared(fmt::format("emu:{}?{}", image.path(), options), /*read_only=*/false);
  };
  const auto first = mount("timing=off&log_width=2");
  ISOZONE_ASSERT_OK(first.status());
  EXPECT_TRUE(mount("log_width=2&timing=off").ok());
  for (const std::string_view other : {"log_width=2", "log_width=2&timing=on", "log_width=2&timing=off&zonse=3"}) {
    EXPECT_TRUE(mount(other).status().Is(StatusCode::kInvalidArgument)) << other;
  }
}

TEST_F(FileSystemTest, FreesUpWhatAToolThatWasKilledHasLeft) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", "kept"));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/log", "kept, too", {.kind = FileKind::kLog}));
  volume_.Unmount();
  {
    const auto device = volume_.OpenDevice();
    const std::vector<ZoneId> free = FreeUpZones(*device).value().free;
    std::string garbage = RandomBytes(random_, 64 * kKiB);
    for (size_t i = 0; i < free.size(); i += 2) {
      DeviceRequest request;
      request.op = DeviceOp::kWrite;
      request.offset = device->geometry().ZoneStart(free[i]);
      request.data = reinterpret_cast<std::byte*>(garbage.data());
      request.length = garbage.size();
      ASSERT_EQ(SubmitAndWait(*device, request), DeviceStatus::kSuccess);
      request.op = DeviceOp::kFinish;  // because active zones are few
      ASSERT_EQ(SubmitAndWait(*device, request), DeviceStatus::kSuccess);
    }
    EXPECT_EQ(FreeUpZones(*device).value().free, free);
    std::vector<ZoneDescriptor> report(device->geometry().zone_count);
    ISOZONE_ASSERT_OK(device->ReportZones(ZoneId(0), report));
    for (const ZoneId zone : free) EXPECT_EQ(report[zone.value()].state, ZoneState::kEmpty);
  }
  ISOZONE_ASSERT_OK(volume_.Mount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), "kept");
  EXPECT_EQ(volume_.ReadFile("/log").value(), "kept, too");
}

// A scan need not read what lies behind the end of the last file.
TEST_F(FileSystemTest, KnowsHowFarAZoneWasWrittenThatWasFinishedEarly) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", RandomBytes(random_, 64 * kKiB)));
  volume_.Unmount();
  const auto device = volume_.OpenDevice();
  const RecoveredMetadata metadata = RecoverMetadata(*device).value();
  const Inode* file = metadata.state.Next(kRootInode);
  ASSERT_TRUE(file != nullptr && file->extents.size() == 1);
  const ZoneId zone = device->geometry().ZoneOf(file->extents.front().device_offset);
  EXPECT_EQ(FreeUpZones(*device)->written[zone.value()], 64 * kKiB);
  ISOZONE_ASSERT_OK(ManageZone(*device, DeviceOp::kFinish, zone));
  EXPECT_EQ(FreeUpZones(*device)->written[zone.value()], 64 * kKiB);
}

// A tool that is killed leaves such zones behind.
TEST_F(FileSystemTest, ToleratesAnythingInFreeZones) {
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", "kept"));
  volume_.Unmount();
  {
    const auto device = volume_.OpenDevice();
    const std::vector<ZoneId> free = FreeUpZones(*device).value().free;
    EXPECT_GT(free.size(), SmallGeometry().zone_count / 2);
    std::string garbage = RandomBytes(random_, 64 * kKiB);
    for (const ZoneId zone : free) {
      DeviceRequest request;
      request.op = DeviceOp::kWrite;
      request.offset = device->geometry().ZoneStart(zone);
      request.data = reinterpret_cast<std::byte*>(garbage.data());
      request.length = garbage.size();
      ASSERT_EQ(SubmitAndWait(*device, request), DeviceStatus::kSuccess);
      request.op = DeviceOp::kFinish;  // because active zones are few
      ASSERT_EQ(SubmitAndWait(*device, request), DeviceStatus::kSuccess);
    }
  }
  ISOZONE_ASSERT_OK(volume_.Mount());
  EXPECT_EQ(volume_.ReadFile("/f").value(), "kept");
  ISOZONE_ASSERT_OK(fs().state().Settle());
  ISOZONE_ASSERT_OK(volume_.WriteFile("/g", RandomBytes(random_, 4 * kMiB)));
  EXPECT_GT(fs().state().Space().empty_zones, SmallGeometry().zone_count / 2);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(FileSystemTest, RemembersZoneGroups) {
  EXPECT_EQ(fs().groups().Get(), nullptr);
  ZoneGroups groups;
  groups.channel_of_group = {0, 1};
  for (uint32_t zone = 0; zone < SmallGeometry().zone_count; ++zone) {
    groups.group_of_zone.push_back(static_cast<uint16_t>(zone % 2));
    groups.confidence_percent.push_back(99);
  }
  ISOZONE_ASSERT_OK(fs().groups().Set(groups));
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  ASSERT_NE(fs().groups().Get(), nullptr);
  EXPECT_EQ(*fs().groups().Get(), groups);
  groups.group_of_zone.pop_back();
  EXPECT_TRUE(fs().groups().Set(groups).Is(StatusCode::kCorruption));
}

TEST_F(FileSystemTest, ManyWritersAndReadersAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      Random random(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < 20; ++i) {
        const std::string path = "/t" + std::to_string(t) + "-" + std::to_string(i % 3);
        const std::string content = RandomBytes(random, 1 + random.Below(400000));
        const CreateOptions options{static_cast<FileKind>(random.Below(3)), IoClass::kOther, Lifetime::kMedium, 0};
        ISOZONE_ASSERT_OK(volume_.WriteFile(path, content, options));
        ASSERT_EQ(volume_.ReadFile(path).value(), content);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

}  // namespace
}  // namespace isozone
