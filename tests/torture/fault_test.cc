// Every fault of docs/fault-model.md, through the file system: what it must not break, and what it must say.
#include <random>

#include <gtest/gtest.h>

#include "model/client.h"
#include "model/fine.h"
#include "model/quiet_log.h"
#include "model/volume.h"

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
    EXPECT_TRUE(fs().VisitFiles([&](const FileDetails& file) {
                      if (file.paths.front() == path && !file.extents.empty()) {
                        zone = device().geometry().ZoneOf(file.extents.back().device_offset);
                      }
                    })
                    .ok());
    return zone;
  }
  ZoneDescriptor Report(ZoneId zone) {
    ZoneDescriptor descriptor;
    EXPECT_TRUE(device().ReportZones(zone, {&descriptor, 1}).ok());
    return descriptor;
  }
  ZoneId MetadataZone(ZoneUse use) {
    for (const ZoneView& zone : fs().Zones()) {
      if (zone.use == use && zone.device.write_pointer > 0) return zone.device.zone;
    }
    ADD_FAILURE() << "no " << ZoneUseName(use) << " zone is written";
    return ZoneId(0);
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
    EXPECT_EQ("", fs().read_only_reason());
    WriteFile("/g", content, kind);
    ExpectContent("/g", content);
  }
}

TEST_F(FaultTest, AReadErrorWhileALogIsOpenedDoesNotShortenIt) {
  const std::string content = Content(20'000);
  WriteFile("/log", content, FileKind::kLog);
  device().FailNext(DeviceOp::kRead, ZoneOf("/log"), DeviceStatus::kUnrecoveredReadError);
  const auto first = fs().OpenForRead("/log");
  ExpectContent("/log", content);
}

TEST_F(FaultTest, AReadErrorWhileMountingDoesNotShortenALog) {
  const std::string content = Content(20'000);
  auto writer = Create("/log", FileKind::kLog);
  ASSERT_FINE(Append(*writer, content));
  ASSERT_FINE(writer->Sync());
  const ZoneId zone = ZoneOf("/log");
  device().CutPower();
  writer.reset();
  ASSERT_FINE(volume_->Unmount());

  auto opened = volume_->Open();
  ASSERT_FINE(opened.status());
  (*opened)->FailNext(DeviceOp::kRead, zone, DeviceStatus::kUnrecoveredReadError);
  auto mounted = FileSystem::Mount(std::move(*opened), Options());
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
  ASSERT_FINE(fs().Settle());
  EXPECT_EQ(0u, fs().Space().live);
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
    const uint64_t retries = fs().Stats().write_retries;
    device().FailNext(DeviceOp::kWrite, failed, DeviceStatus::kWriteFault);
    ASSERT_FINE(Append(*writer, std::string_view(content).substr(100'000)));
    ASSERT_FINE(writer->Sync());
    ASSERT_FINE(writer->Close());
    writer.reset();
    EXPECT_EQ(retries + 1, fs().Stats().write_retries);
    const ZoneDescriptor after = Report(failed);
    EXPECT_TRUE(after.write_pointer == write_pointer || after.state == ZoneState::kFull) << "it was written again";
    EXPECT_NE(failed, ZoneOf(path));
    ExpectContent(path, content);
    EXPECT_EQ("", fs().read_only_reason());
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
    ASSERT_FINE(fs().Settle());
    WriteFile(path, content, kind);
    EXPECT_NE(turned, ZoneOf(path));
    EXPECT_EQ(ZoneState::kReadOnly, Report(turned).state);
    EXPECT_EQ("", fs().read_only_reason());
  }
  EXPECT_EQ(2u, fs().Space().unusable_zones);
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
    EXPECT_EQ("", fs().read_only_reason());
    WriteFile("/new", content);
    ExpectContent("/new", content);
  };
  check();
  ASSERT_NO_FATAL_FAILURE(Remount());
  check();
  ASSERT_FINE(fs().Unlink("/lost"));
  ASSERT_FINE(fs().Settle());
  EXPECT_EQ(1u, fs().Space().unusable_zones);
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

class MetadataFaultTest : public FaultTest, public ::testing::WithParamInterface<DeviceStatus> {};

TEST_P(MetadataFaultTest, AFailedMetadataWriteLatchesAndReadsGoOn) {
  const std::string content = Content(100'000);
  WriteFile("/f", content);
  const ZoneId journal = MetadataZone(ZoneUse::kJournal);
  if (GetParam() == DeviceStatus::kZoneIsReadOnly) {
    device().SetZoneState(journal, ZoneState::kReadOnly);
  } else {
    device().FailNext(DeviceOp::kWrite, journal, GetParam());
  }
  ASSERT_FINE(fs().Rename("/f", "/g"));
  EXPECT_FALSE(fs().SyncMetadata().ok());

  EXPECT_NE("", fs().read_only_reason());
  const Status refused = fs().CreateDirectory("/d");
  EXPECT_TRUE(refused.Is(StatusCode::kReadOnly)) << refused.ToString();
  EXPECT_NE(std::string::npos, refused.ToString().find("zone " + std::to_string(journal.value())))
      << refused.ToString() << " does not say which zone failed";
  EXPECT_FALSE(fs().Create("/h", {}).ok());
  ExpectContent("/g", content);

  EXPECT_FALSE(fs().Unmount().ok());
  EXPECT_TRUE(volume_->Unmount().ok());
  ASSERT_FINE(volume_->Mount(Options()));
  EXPECT_EQ("", fs().read_only_reason());
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

TEST_F(FaultTest, AnOfflineMetadataZoneIsNamed) {
  for (const ZoneUse use : {ZoneUse::kJournal, ZoneUse::kCheckpoint, ZoneUse::kSuperblock}) {
    SCOPED_TRACE(ZoneUseName(use));
    ASSERT_FINE(fs().CreateDirectory("/d"));
    ASSERT_FINE(fs().SyncMetadata());
    const ZoneId zone = MetadataZone(use);
    device().SetZoneState(zone, ZoneState::kOffline);
    (void)fs().Unmount();  // may fail, or have nothing to write
    ASSERT_FINE(volume_->Unmount());
    const Status mounted = volume_->Mount(Options());
    ASSERT_FALSE(mounted.ok());
    EXPECT_NE(std::string::npos, mounted.ToString().find("zone " + std::to_string(zone.value()))) << mounted.ToString();
    EXPECT_NE(std::string::npos, mounted.ToString().find("is offline")) << mounted.ToString();
    ASSERT_NO_FATAL_FAILURE(SetUp());
  }
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
  model::Client client(fs(), oracle, model::TestSeed(1), options);
  for (int i = 0; i < 2000; ++i) ASSERT_FINE(client.Step());
  ASSERT_FINE(client.CloseAll());
  const auto found = model::Collect(fs(), "");
  ASSERT_FINE(found.status());
  ASSERT_FINE(oracle.CheckExactly(*found));
}

// Everything at once, in a random workload: errors are returned, and what can be read is right.
TEST(FaultStorm, WhatCanBeReadIsRight) {
  const QuietLog quiet;
  const uint64_t seed = model::TestSeed(std::random_device{}());
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  uint64_t io_errors = 0;
  int mounted_again = 0;
  for (int storm = 0; storm < 60; ++storm) {
    SCOPED_TRACE("storm " + std::to_string(storm));
    auto volume = Volume::Create(model::RandomGeometry(random, kMiB));
    ASSERT_FINE(volume.status());
    ASSERT_FINE(volume->Format());
    model::Oracle oracle;
    FaultPlan faults;
    faults.seed = random.Next();
    faults.read_error = random.Chance(0.5) ? 0.001 : 0;
    faults.write_error = random.Chance(0.7) ? 0.003 : 0;
    faults.zone_read_only = random.Chance(0.5) ? 0.0005 : 0;
    faults.zone_offline = random.Chance(0.3) ? 0.0002 : 0;
    const Status began = volume->Mount(model::RandomMountOptions(random, /*at_leisure=*/true), faults);
    if (began.Is(StatusCode::kIoError)) continue;  // the metadata could not be read
    ASSERT_FINE(began);
    model::ClientOptions options;
    options.max_append = 64 * kKiB;
    options.live_target = 6 * kMiB;
    options.expects_faults = true;
    {
      model::Client client(volume->fs(), oracle, random.Next(), options);
      Status status;
      for (int i = 0; i < 3000 && status.ok(); ++i) status = client.Step();
      // The first failed metadata write ends the writing, and says so.
      if (!status.ok()) {
        EXPECT_TRUE(status.Is(StatusCode::kReadOnly) || status.Is(StatusCode::kIoError)) << status.ToString();
        EXPECT_NE("", volume->fs().read_only_reason()) << status.ToString();
      }
      io_errors += client.counters().io_errors;
    }
    (void)volume->Unmount();
    // Without new faults it can be mounted, unless the metadata itself is gone, and what is read is what was written.
    const Status mounted = volume->Mount({});
    if (!mounted.ok() && mounted.message().find("is offline") != std::string::npos) continue;
    ASSERT_FINE(mounted);
    ++mounted_again;
    const auto found = model::Collect(volume->fs(), "", /*tolerate_unreadable=*/true);
    ASSERT_FINE(found.status());
    ASSERT_FINE(oracle.CheckAfterPowerCut(*found));
    ASSERT_FINE(volume->Unmount());
  }
  EXPECT_GT(io_errors, 0u);
  EXPECT_GT(mounted_again, 30);
}

}  // namespace
}  // namespace isozone::torture
