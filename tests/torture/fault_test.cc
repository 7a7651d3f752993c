// Every fault of docs/fault-model.md, through the file system: what it must not break, and what it must say.
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "model/client.h"
#include "model/fine.h"
#include "model/volume.h"
#include "store/inode_files.h"

namespace isozone::torture {
namespace {

using model::Volume;

class FaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DeviceGeometry geometry;
    geometry.zone_count = 32;
    geometry.zone_size = geometry.zone_capacity = kMiB;
    geometry.max_open_zones = geometry.max_active_zones = 12;
    geometry.optimal_write = geometry.block_size;
    auto volume = Volume::Create(geometry);
    ASSERT_FINE(volume.status());
    volume_ = std::make_unique<Volume>(std::move(*volume));
    ASSERT_FINE(volume_->Format());
    ASSERT_FINE(volume_->Mount(Options()));
  }
  void TearDown() override {
    if (volume_->mounted()) {
      ASSERT_FINE(volume_->Unmount());
    }
  }

  static MountOptions Options() {
    MountOptions options;
    options.write_buffer = 64 * kKiB;
    return options;
  }
  FileSystem& fs() { return volume_->fs(); }
  EmulatedDevice& device() { return volume_->device(); }

  static std::string Content(size_t size) {
    std::string content(size, '\0');
    Random random(size);
    for (char& c : content) c = static_cast<char>(random.Next());
    return content;
  }
  static Status Append(FileWriter& writer, std::string_view text) {
    return writer.Append(std::as_bytes(std::span(text)));
  }
  std::unique_ptr<FileWriter> Create(const std::string& path, FileKind kind = FileKind::kData) {
    auto writer = fs().Create(path, {kind});
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  void WriteFile(const std::string& path, std::string_view content, FileKind kind = FileKind::kData) {
    const auto writer = Create(path, kind);
    ASSERT_FINE(Append(*writer, content));
    ASSERT_FINE(writer->Sync());
    ASSERT_FINE(writer->Close());
  }
  Result<std::string> ReadFile(const std::string& path) {
    ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs().OpenForRead(path));
    std::string content(reader->size(), '\0');
    ISOZONE_ASSIGN_OR_RETURN(const size_t read,
                             reader->Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead));
    content.resize(read);
    return content;
  }
  void ExpectContent(const std::string& path, const std::string& content) {
    const auto read = ReadFile(path);
    ASSERT_FINE(read.status());
    EXPECT_TRUE(*read == content) << path << " has " << read->size() << " bytes of " << content.size();
  }
  // The zone with the last byte of the file.
  ZoneId ZoneOf(const std::string& path) {
    ZoneId zone;
    EXPECT_TRUE(fs().state()
                    .VisitFiles([&](const FileDetails& file) {
                      if (file.paths.front() == path && !file.extents.empty()) {
                        zone = device().geometry().ZoneOf(file.extents.back().device_offset);
                      }
                    })
                    .ok());
    return zone;
  }
  static ZoneDescriptor Report(const EmulatedDevice& device, ZoneId zone) {
    ZoneDescriptor descriptor;
    EXPECT_TRUE(device.ReportZones(zone, {&descriptor, 1}).ok());
    return descriptor;
  }
  ZoneDescriptor Report(ZoneId zone) { return Report(device(), zone); }
  // What the power leaves of what is being written, not mounted.
  Result<std::unique_ptr<EmulatedDevice>> OpenAfterPowerCut(std::unique_ptr<FileWriter> writer) {
    device().CutPower();
    writer.reset();
    ISOZONE_RETURN_IF_ERROR(volume_->Unmount());
    return volume_->Open();
  }
  // One of each copy of the metadata.
  std::vector<ZoneId> MetadataZones() {
    std::vector<ZoneId> zones;
    for (const auto& copy : fs().state().Metadata().whole) zones.push_back(copy.back());
    EXPECT_EQ(2U, zones.size());
    return zones;
  }
  // The next scan of a log there fails: what it reads, and, when it tries again, the block that it is at.
  static void FailReadsOf(EmulatedDevice& device, ZoneId zone) {
    for (int i = 0; i < 2; ++i) device.FailNext(DeviceOp::kRead, zone, DeviceStatus::kUnrecoveredReadError);
  }
  // Writes /log, whose end cannot be made durable when it is closed: its region stays open.
  void LeaveLogOpen(std::string_view content) {
    const auto writer = Create("/log", FileKind::kLog);
    ASSERT_FINE(Append(*writer, content));
    ASSERT_FINE(writer->WriteOut());
    device().FailNext(DeviceOp::kFlush, ZoneId(0), DeviceStatus::kInternalError);
    EXPECT_FALSE(writer->Close().ok());
  }
  // A file system whose /log with `content` was open when the power went, and could not be read while mounting.
  Result<std::unique_ptr<FileSystem>> MountWithUnreadLog(const std::string& content) {
    auto writer = Create("/log", FileKind::kLog);
    ISOZONE_RETURN_IF_ERROR(Append(*writer, content));
    ISOZONE_RETURN_IF_ERROR(writer->Sync());
    const ZoneId zone = ZoneOf("/log");
    ISOZONE_ASSIGN_OR_RETURN(auto opened, OpenAfterPowerCut(std::move(writer)));
    FailReadsOf(*opened, zone);
    return FileSystem::Mount(std::move(opened), Options());
  }
  void Remount() {
    ASSERT_FINE(volume_->Unmount());
    ASSERT_FINE(volume_->Mount(Options()));
  }

  std::unique_ptr<Volume> volume_;
};

TEST_F(FaultTest, AReadErrorIsReturnedAndDoesNotLatch) {
  const std::string content = Content(100'000);
  for (const FileKind kind : {FileKind::kData, FileKind::kLog, FileKind::kSmall}) {
    SCOPED_TRACE(FileKindName(kind));
    WriteFile("/f", content, kind);
    const auto reader = fs().OpenForRead("/f");
    ASSERT_FINE(reader.status());
    std::string buffer(5000, '\0');
    device().FailNext(DeviceOp::kRead, ZoneOf("/f"), DeviceStatus::kUnrecoveredReadError);
    const auto failed = (*reader)->Read(0, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead);
    EXPECT_TRUE(failed.status().Is(StatusCode::kIoError)) << failed.status().ToString();
    ExpectContent("/f", content);
    EXPECT_EQ("", fs().state().read_only_reason());
    WriteFile("/g", content, kind);
    ExpectContent("/g", content);
  }
}

TEST_F(FaultTest, AReadErrorWhileALogIsOpenedDoesNotShortenIt) {
  const std::string content = Content(20'000);
  WriteFile("/log", content, FileKind::kLog);
  FailReadsOf(device(), ZoneOf("/log"));
  const auto first = fs().OpenForRead("/log");
  ExpectContent("/log", content);
}

TEST_F(FaultTest, AReadErrorWhileMountingDoesNotShortenALog) {
  const std::string content = Content(20'000);
  auto mounted = MountWithUnreadLog(content);
  ASSERT_FINE(mounted.status());
  auto appender = (*mounted)->OpenForAppend("/log", {});
  ASSERT_FINE(appender.status());
  ASSERT_FINE(Append(**appender, "more"));
  ASSERT_FINE((*appender)->Close());
  appender->reset();
  ASSERT_FINE((*mounted)->Unmount());
  mounted->reset();

  ASSERT_FINE(volume_->Check(/*read_data=*/true));
  ASSERT_FINE(volume_->Mount(Options()));
  ExpectContent("/log", content + "more");
  ASSERT_FINE(fs().Unlink("/log"));
  ASSERT_FINE(fs().state().Settle());
  EXPECT_EQ(0u, fs().state().Space().live);
}

TEST_F(FaultTest, ALogThatWasUnreadWhileMountingStaysWithItsReadersWhenItIsRemoved) {
  const std::string content = Content(20'000);
  auto mounted = MountWithUnreadLog(content);
  ASSERT_FINE(mounted.status());
  auto reader = (*mounted)->OpenForRead("/log");
  ASSERT_FINE(reader.status());
  ASSERT_FINE((*mounted)->Unlink("/log"));
  ASSERT_FINE((*mounted)->state().Settle());
  std::string found(content.size(), '\0');
  ASSERT_FINE((*reader)->Read(0, std::as_writable_bytes(std::span(found)), IoClass::kUserRead).status());
  EXPECT_TRUE(found == content);
  reader->reset();
  ASSERT_FINE((*mounted)->state().Settle());
  EXPECT_EQ(0u, (*mounted)->state().Space().live);
  ASSERT_FINE((*mounted)->Unmount());
  mounted->reset();
  ASSERT_FINE(volume_->Mount(Options()));
}

TEST_F(FaultTest, ALogIsCutToASizeThatItOnlySeemsToHave) {
  WriteFile("/log", Content(20'000), FileKind::kLog);
  FailReadsOf(device(), ZoneOf("/log"));
  auto reader = fs().OpenForRead("/log");
  ASSERT_FINE(reader.status());
  EXPECT_EQ(0u, (*reader)->size());
  ASSERT_FINE(fs().Truncate("/log", 0));
  reader->reset();
  ExpectContent("/log", "");
}

TEST_F(FaultTest, ALogThatCouldNotBeClosedIsCountedOnce) {
  for (const bool opened_again : {true, false}) {
    SCOPED_TRACE(opened_again ? "opened again" : "removed as it is");
    const std::string content = Content(20'000);
    ASSERT_NO_FATAL_FAILURE(LeaveLogOpen(content));
    if (opened_again) {
      auto appender = fs().OpenForAppend("/log", {});
      ASSERT_FINE(appender.status());
      ASSERT_FINE((*appender)->Close());
      appender->reset();
      ExpectContent("/log", content);
    }
    ASSERT_FINE(fs().Unlink("/log"));
    ASSERT_FINE(fs().state().Settle());
    EXPECT_EQ(0u, fs().state().Space().live);
  }
}

// Whoever asks for its size is told what a reader finds.
TEST_F(FaultTest, ALogThatCouldNotBeClosedHasOneSize) {
  const std::string content = Content(20'000);
  ASSERT_NO_FATAL_FAILURE(LeaveLogOpen(content));
  const auto stat = fs().Stat("/log");
  ASSERT_FINE(stat.status());
  EXPECT_EQ(content.size(), stat->size);
  EXPECT_EQ(content.size(), fs().inodes().GetAttributes(stat->inode).value().size);
  const auto listed = fs().List("/");
  ASSERT_FINE(listed.status());
  ASSERT_EQ(1U, listed->size());
  EXPECT_EQ(content.size(), listed->front().attributes.size);
  ASSERT_FINE(fs().state().VisitFiles([&](const FileDetails& file) {
    if (!file.attributes.is_directory) {
      EXPECT_EQ(content.size(), file.attributes.size);
    }
  }));
  ExpectContent("/log", content);
}

// What is given an end when a log is opened again is durable before the end is.
TEST_F(FaultTest, ALogThatCouldNotBeClosedSurvivesAPowerCutAfterItIsOpenedAgain) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("fault_seed=" + std::to_string(seed));
    ASSERT_FINE(volume_->Unmount());
    ASSERT_FINE(volume_->Format());
    FaultPlan faults;
    faults.seed = seed;
    ASSERT_FINE(volume_->Mount(Options(), faults));
    const std::string content = Content(20'000);
    ASSERT_NO_FATAL_FAILURE(LeaveLogOpen(content));
    auto appender = fs().OpenForAppend("/log", {FileKind::kLog});
    ASSERT_FINE(appender.status());
    ASSERT_FINE(fs().SyncMetadata());
    device().CutPower();
    appender->reset();
    ASSERT_FINE(volume_->Unmount());
    ASSERT_FINE(volume_->Mount(Options()));
    ExpectContent("/log", content);
  }
}

// The end of a log could not be made durable: what is behind its torn frame is still to look torn the next time.
TEST_F(FaultTest, NothingIsWrittenBehindATornFrameWhoseEndIsNotDurable) {
  int torn = 0;
  for (uint64_t seed = 1; torn < 4; ++seed) {
    ASSERT_LT(seed, 200u);
    ASSERT_FINE(volume_->Unmount());
    ASSERT_FINE(volume_->Format());
    FaultPlan faults;
    faults.seed = seed;
    ASSERT_FINE(volume_->Mount(Options(), faults));
    const std::string content = Content(10'000);
    auto writer = Create("/log", FileKind::kLog);
    ASSERT_FINE(Append(*writer, content));
    ASSERT_FINE(writer->Sync());
    const ZoneId zone = ZoneOf("/log");
    const std::vector<ZoneId> journals = MetadataZones();
    const uint64_t synced = Report(zone).write_pointer;
    ASSERT_FINE(Append(*writer, Content(60'000)));
    ASSERT_FINE(writer->WriteOut());
    const uint64_t written = Report(zone).write_pointer;
    auto opened = OpenAfterPowerCut(std::move(writer));
    ASSERT_FINE(opened.status());
    const uint64_t left = Report(**opened, zone).write_pointer;
    if (left > synced && left < written) ++torn;
    for (const ZoneId journal : journals) {
      (*opened)->FailNext(DeviceOp::kWrite, journal, DeviceStatus::kWriteFault);
    }
    auto mounted = FileSystem::Mount(std::move(*opened), Options());
    ASSERT_FINE(mounted.status());
    EXPECT_NE("", (*mounted)->state().read_only_reason());
    if (auto appender = (*mounted)->OpenForAppend("/log", {FileKind::kLog}); appender.ok()) {
      (void)Append(**appender, Content(60'000));
      (void)(*appender)->Sync();
    }
    (void)(*mounted)->Unmount();
    mounted->reset();
    ASSERT_FINE(volume_->Mount(Options()));
    const auto found = ReadFile("/log");
    ASSERT_FINE(found.status());
    EXPECT_TRUE(found->starts_with(content));
    auto appender = fs().OpenForAppend("/log", {FileKind::kLog});
    EXPECT_TRUE(appender.ok()) << appender.status().ToString();
  }
}

TEST_F(FaultTest, AWriteErrorMovesTheTailToAnotherZone) {
  for (const FileKind kind : {FileKind::kData, FileKind::kLog, FileKind::kSmall}) {
    SCOPED_TRACE(FileKindName(kind));
    const std::string content = Content(300'000);
    const std::string path = "/" + std::string(FileKindName(kind));
    auto writer = Create(path, kind);
    ASSERT_FINE(Append(*writer, std::string_view(content).substr(0, 100'000)));
    ASSERT_FINE(writer->Sync());
    const ZoneId failed = ZoneOf(path);
    const uint64_t write_pointer = Report(failed).write_pointer;
    const uint64_t retries = fs().state().Stats().write_retries;
    device().FailNext(DeviceOp::kWrite, failed, DeviceStatus::kWriteFault);
    ASSERT_FINE(Append(*writer, std::string_view(content).substr(100'000)));
    ASSERT_FINE(writer->Sync());
    ASSERT_FINE(writer->Close());
    writer.reset();
    EXPECT_EQ(retries + 1, fs().state().Stats().write_retries);
    const ZoneDescriptor after = Report(failed);
    EXPECT_TRUE(after.write_pointer == write_pointer || after.state == ZoneState::kFull) << "it was written again";
    EXPECT_NE(failed, ZoneOf(path));
    ExpectContent(path, content);
    EXPECT_EQ("", fs().state().read_only_reason());
    ASSERT_NO_FATAL_FAILURE(Remount());
    ExpectContent(path, content);
  }
  ASSERT_FINE(volume_->Unmount());
  ASSERT_FINE(volume_->Check(/*read_data=*/true));
}

TEST_F(FaultTest, AZoneThatTurnsReadOnlyKeepsItsDataAndIsNotWrittenAgain) {
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    SCOPED_TRACE(FileKindName(kind));
    const std::string content = Content(300'000);
    const std::string path = "/" + std::string(FileKindName(kind));
    auto writer = Create(path, kind);
    ASSERT_FINE(Append(*writer, std::string_view(content).substr(0, 100'000)));
    ASSERT_FINE(writer->Sync());
    const ZoneId turned = ZoneOf(path);
    device().SetZoneState(turned, ZoneState::kReadOnly);
    ASSERT_FINE(Append(*writer, std::string_view(content).substr(100'000)));
    ASSERT_FINE(writer->Sync());
    ASSERT_FINE(writer->Close());
    writer.reset();
    ExpectContent(path, content);
    EXPECT_NE(turned, ZoneOf(path));
    ASSERT_NO_FATAL_FAILURE(Remount());
    ExpectContent(path, content);
    ASSERT_FINE(fs().Unlink(path));
    ASSERT_FINE(fs().state().Settle());
    WriteFile(path, content, kind);
    EXPECT_NE(turned, ZoneOf(path));
    EXPECT_EQ(ZoneState::kReadOnly, Report(turned).state);
    EXPECT_EQ("", fs().state().read_only_reason());
  }
  EXPECT_EQ(2u, fs().state().Space().unusable_zones);
}

TEST_F(FaultTest, AZoneThatGoesOfflineTakesOnlyItsOwnDataAlong) {
  const std::string content = Content(300'000);
  WriteFile("/lost", Content(kMiB));  // a zone of its own
  WriteFile("/kept", content);
  const ZoneId offline = ZoneOf("/lost");
  ASSERT_NE(offline, ZoneOf("/kept")) << "the test needs them apart";
  device().SetZoneState(offline, ZoneState::kOffline);
  const auto check = [&] {
    const auto lost = ReadFile("/lost");
    EXPECT_FALSE(lost.ok());
    EXPECT_NE(std::string::npos, lost.status().ToString().find("Zone Is Offline")) << lost.status().ToString();
    ExpectContent("/kept", content);
    EXPECT_EQ("", fs().state().read_only_reason());
    WriteFile("/new", content);
    ExpectContent("/new", content);
  };
  check();
  ASSERT_NO_FATAL_FAILURE(Remount());
  check();
  ASSERT_FINE(fs().Unlink("/lost"));
  ASSERT_FINE(fs().state().Settle());
  EXPECT_EQ(1u, fs().state().Space().unusable_zones);
}

TEST_F(FaultTest, AnOfflineZoneOfALogIsReportedAndTheRestMounts) {
  const std::string content = Content(100'000);
  auto writer = Create("/log", FileKind::kLog);
  ASSERT_FINE(Append(*writer, content));
  ASSERT_FINE(writer->Sync());
  WriteFile("/kept", content);
  device().SetZoneState(ZoneOf("/log"), ZoneState::kOffline);
  writer.reset();
  ASSERT_NO_FATAL_FAILURE(Remount());
  const auto reader = fs().OpenForRead("/log");
  if (reader.ok()) {
    std::string buffer(100, '\0');
    EXPECT_FALSE((*reader)->Read(0, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead).ok());
  }
  ExpectContent("/kept", content);
  WriteFile("/new", content, FileKind::kLog);
  ExpectContent("/new", content);
}

// What is found while an open log gets its end is found again by everybody who reads the log, and hides nothing before
// it.
TEST_F(FaultTest, ADamagedLogStaysDamaged) {
  const std::string content = Content(10'000);
  auto writer = Create("/log", FileKind::kLog);
  ASSERT_FINE(Append(*writer, content));
  ASSERT_FINE(writer->Sync());
  const ZoneId zone = ZoneOf("/log");
  {
    auto raw = OpenAfterPowerCut(std::move(writer));
    ASSERT_FINE(raw.status());
    const ZoneDescriptor log = Report(**raw, zone);
    AlignedBuffer junk((*raw)->geometry().block_size);
    std::memset(junk.data(), 0xAB, junk.size());
    DeviceRequest write;
    write.op = DeviceOp::kWrite;
    write.offset = DeviceOffset((*raw)->geometry().ZoneStart(zone).value() + log.write_pointer);
    write.data = junk.data();
    write.length = junk.size();
    ASSERT_EQ(DeviceStatus::kSuccess, SubmitAndWait(**raw, write));
  }
  ASSERT_FINE(volume_->Mount(Options()));
  for (int mount = 0; mount < 2; ++mount) {
    EXPECT_EQ(content.size(), fs().Stat("/log")->size);
    auto reader = fs().OpenForRead("/log");
    ASSERT_FINE(reader.status());
    EXPECT_EQ(content.size(), (*reader)->size());
    std::string buffer(content.size() + 1, '\0');
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(buffer));
    ASSERT_FINE((*reader)->Read(0, bytes.first(content.size()), IoClass::kUserRead).status());
    EXPECT_TRUE(buffer.starts_with(content));
    const Status behind = (*reader)->Read(0, bytes, IoClass::kUserRead).status();
    EXPECT_TRUE(behind.Is(StatusCode::kCorruption)) << behind.ToString();
    reader->reset();
    ASSERT_NO_FATAL_FAILURE(Remount());
  }
}

class MetadataFaultTest : public FaultTest, public ::testing::WithParamInterface<DeviceStatus> {
 protected:
  // The next write to `zone`, at least, fails so.
  void Fail(ZoneId zone) {
    if (GetParam() == DeviceStatus::kZoneIsReadOnly) {
      device().SetZoneState(zone, ZoneState::kReadOnly);
    } else {
      device().FailNext(DeviceOp::kWrite, zone, GetParam());
    }
  }
};

TEST_P(MetadataFaultTest, AFailedWriteOfOneCopyIsNoticedByNobodyAndItIsWrittenAnew) {
  const std::string content = Content(100'000);
  WriteFile("/f", content);
  for (const size_t copy : {0U, 1U}) {
    Fail(MetadataZones().at(copy));
    ASSERT_FINE(fs().Rename("/f", "/g"));
    ASSERT_FINE(fs().SyncMetadata());
    EXPECT_EQ("", fs().state().read_only_reason());
    ASSERT_FINE(fs().state().RestoreMetadataCopies());
    EXPECT_EQ(2U, fs().state().Metadata().whole.size());
    ASSERT_FINE(fs().Rename("/g", "/f"));
  }
  ASSERT_NO_FATAL_FAILURE(Remount());
  ExpectContent("/f", content);
  EXPECT_EQ(2U, fs().state().Metadata().whole.size());
}

TEST_P(MetadataFaultTest, AFailedMetadataWriteLatchesAndReadsGoOn) {
  const std::string content = Content(100'000);
  WriteFile("/f", content);
  const std::vector<ZoneId> journals = MetadataZones();
  for (const ZoneId journal : journals) Fail(journal);
  ASSERT_FINE(fs().Rename("/f", "/g"));
  EXPECT_FALSE(fs().SyncMetadata().ok());

  EXPECT_NE("", fs().state().read_only_reason());
  const Status refused = fs().CreateDirectory("/d");
  EXPECT_TRUE(refused.Is(StatusCode::kReadOnly)) << refused.ToString();
  EXPECT_NE(std::string::npos, refused.ToString().find("zone " + std::to_string(journals.front().value())))
      << refused.ToString() << " does not say which zone failed";
  EXPECT_FALSE(fs().Create("/h", {}).ok());
  ExpectContent("/g", content);

  EXPECT_FALSE(fs().Unmount().ok());
  EXPECT_TRUE(volume_->Unmount().ok());
  ASSERT_FINE(volume_->Mount(Options()));
  EXPECT_EQ("", fs().state().read_only_reason());
  const bool renamed = fs().Stat("/g").ok();
  ExpectContent(renamed ? "/g" : "/f", content);
  WriteFile("/after", content);
  ASSERT_NO_FATAL_FAILURE(Remount());
  ExpectContent("/after", content);
}

INSTANTIATE_TEST_SUITE_P(Faults, MetadataFaultTest,
                         ::testing::Values(DeviceStatus::kWriteFault, DeviceStatus::kZoneIsReadOnly),
                         [](const auto& info) {
                           return info.param == DeviceStatus::kWriteFault ? "WriteFault" : "ZoneIsReadOnly";
                         });

TEST_F(FaultTest, AnOfflineZoneOfOneCopyOfTheMetadataTakesNothingWithIt) {
  for (const size_t copy : {0U, 1U}) {
    ASSERT_FINE(fs().CreateDirectory("/d" + std::to_string(copy)));
    ASSERT_FINE(fs().SyncMetadata());
    device().SetZoneState(MetadataZones().at(copy), ZoneState::kOffline);
    ASSERT_NO_FATAL_FAILURE(Remount());
    EXPECT_TRUE(fs().Stat("/d" + std::to_string(copy)).ok());
    ASSERT_FINE(fs().state().RestoreMetadataCopies());
  }
  ASSERT_NO_FATAL_FAILURE(Remount());
  EXPECT_TRUE(fs().Stat("/d0").ok());
  EXPECT_EQ(2U, fs().state().Metadata().whole.size());
}

// One copy could not be written any more, and the other one, which had more, is lost before there is another.
TEST_F(FaultTest, AnOlderCopyOfTheMetadataIsMountedForReadingOnlyUnlessTheUserSaysSo) {
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    ASSERT_NO_FATAL_FAILURE(SetUp());
    ASSERT_FINE(fs().CreateDirectory("/before"));
    ASSERT_FINE(fs().SyncMetadata());
    const std::vector<ZoneId> zones = MetadataZones();
    device().SetZoneState(zones[0], ZoneState::kReadOnly);
    ASSERT_FINE(fs().CreateDirectory("/d"));
    ASSERT_FINE(fs().SyncMetadata());
    device().SetZoneState(zones[1], ZoneState::kOffline);
    if (fs().CreateDirectory("/e").ok()) (void)fs().SyncMetadata();  // succeeds if there is another copy by now
    (void)volume_->Unmount();
    const Status mounted = volume_->Mount(Options());
    if (!mounted.ok()) {
      EXPECT_THAT(mounted.ToString(), testing::HasSubstr(fmt::format("zone {}, which may have", zones[1].value())));
      EXPECT_THAT(mounted.ToString(), testing::HasSubstr("isozone fsck --repair"));
      EXPECT_THAT(mounted.ToString(), testing::HasSubstr("read-only"));
      MountOptions options = Options();
      options.read_only = true;
      ASSERT_FINE(volume_->Mount(options));
      EXPECT_TRUE(fs().Stat("/before").ok());
      ASSERT_FINE(volume_->Unmount());
      options = Options();
      options.accept_older_metadata = true;
      ASSERT_FINE(volume_->Mount(options));
      EXPECT_TRUE(fs().Stat("/before").ok());
      ASSERT_FINE(fs().state().RestoreMetadataCopies());
      ASSERT_NO_FATAL_FAILURE(Remount());
    } else {
      EXPECT_TRUE(fs().Stat("/d").ok());
    }
    ASSERT_FINE(volume_->Unmount());
  }
}

TEST_F(FaultTest, WhereAllCopiesOfTheMetadataAreOfflineAZoneIsNamed) {
  ASSERT_FINE(fs().CreateDirectory("/d"));
  ASSERT_FINE(fs().SyncMetadata());
  const std::vector<ZoneId> zones = MetadataZones();
  for (const ZoneId zone : zones) device().SetZoneState(zone, ZoneState::kOffline);
  (void)fs().Unmount();  // may fail, or have nothing to write
  ASSERT_FINE(volume_->Unmount());
  const Status mounted = volume_->Mount(Options());
  ASSERT_FALSE(mounted.ok());
  const ZoneId first = std::min(zones[0], zones[1]);
  EXPECT_NE(std::string::npos, mounted.ToString().find("zone " + std::to_string(first.value()))) << mounted.ToString();
  EXPECT_NE(std::string::npos, mounted.ToString().find("is offline")) << mounted.ToString();
}

TEST_F(FaultTest, LatencySpikesChangeNothing) {
  ASSERT_FINE(volume_->Unmount());
  FaultPlan spikes;
  spikes.seed = 1;
  spikes.latency_spike = 0.2;
  spikes.latency_spike_us = 300;
  ASSERT_FINE(volume_->Mount(Options(), spikes));
  model::Oracle oracle;
  model::ClientOptions options;
  options.live_target = 4 * kMiB;
  model::Client client(fs(), oracle, TestSeed(1), options);
  for (int i = 0; i < 2000; ++i) ASSERT_FINE(client.Step());
  ASSERT_FINE(client.CloseAll());
  const auto found = model::Collect(fs(), "");
  ASSERT_FINE(found.status());
  ASSERT_FINE(oracle.CheckExactly(*found));
}

}  // namespace
}  // namespace isozone::torture
