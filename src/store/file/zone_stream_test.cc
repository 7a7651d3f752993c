// How bytes become durable on devices of both kinds: where Force Unit Access covers the zone that is written, and where
// it covers only its own command.
#include "store/file/zone_stream.h"

#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

struct Commands {
  int flushes = 0;
  int writes = 0;
  int durable_writes = 0;
};

struct Owner {
  std::unique_ptr<EmulatedDevice> owned;
};

// Counts the commands that pass.
class CountingDevice final : private Owner, public PassingDevice {
 public:
  CountingDevice(std::unique_ptr<EmulatedDevice> device, Commands& commands)
      : Owner{std::move(device)}, PassingDevice(*owned), commands_(commands) {}

  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kFlush) ++commands_.flushes;
    if (request.op == DeviceOp::kWrite) ++(request.fua ? commands_.durable_writes : commands_.writes);
    PassingDevice::Submit(request);
  }

 private:
  Commands& commands_;
};

constexpr uint64_t kUnit = 64 * kKiB;

MountOptions WithUnits() {
  MountOptions options;
  options.write_buffer = kUnit;
  options.checkpoint_after = 64 * kMiB;
  return options;
}

// The argument: fua_covers_zone.
class DurabilityTest : public testing::TestWithParam<bool> {
 protected:
  DurabilityTest() : volume_(Geometry()) {}

  static DeviceGeometry Geometry() {
    DeviceGeometry geometry = SmallGeometry();
    geometry.fua_covers_zone = GetParam();
    return geometry;
  }

  // Makes a log in a zone of its own, and lets the metadata know of it.
  std::unique_ptr<FileWriter> OpenLog(FileSystem& fs) {
    auto writer = fs.Create("/log", {.kind = FileKind::kLog});
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    Append(**writer, 10);
    ISOZONE_EXPECT_OK((*writer)->Sync());
    return std::move(*writer);
  }
  void Append(FileWriter& writer, size_t size) {
    const std::string bytes = RandomBytes(random_, size);
    ISOZONE_EXPECT_OK(writer.Append(Bytes(bytes)));
    content_ += bytes;
  }

  TestVolume volume_;
  Random random_{7};
  std::string content_;
};

TEST_P(DurabilityTest, ASyncOfALogWhoseFramesAreAllDurableIsOneWrite) {
  Commands commands;
  auto fs = FileSystem::Mount(std::make_unique<CountingDevice>(volume_.OpenDevice(), commands), WithUnits());
  ISOZONE_ASSERT_OK(fs.status());
  const auto log = OpenLog(**fs);
  commands = {};
  constexpr int kSyncs = 20;
  for (int i = 0; i < kSyncs; ++i) {
    Append(*log, 1000);
    ISOZONE_ASSERT_OK(log->Sync());
  }
  EXPECT_EQ(commands.durable_writes, kSyncs);
  EXPECT_EQ(commands.writes, 0);
  EXPECT_EQ(commands.flushes, 0);
}

TEST_P(DurabilityTest, ASyncBehindVolatileFramesFlushesThemWhereItsWriteDoesNotCoverThem) {
  Commands commands;
  auto fs = FileSystem::Mount(std::make_unique<CountingDevice>(volume_.OpenDevice(), commands), WithUnits());
  ISOZONE_ASSERT_OK(fs.status());
  const auto log = OpenLog(**fs);
  Append(*log, 2 * kUnit);
  commands = {};
  Append(*log, 10);
  ISOZONE_ASSERT_OK(log->Sync());
  EXPECT_EQ(commands.flushes, GetParam() ? 0 : 1);
  EXPECT_EQ(commands.durable_writes, GetParam() ? 1 : 0);
  // The flush has made all of them durable. From here on, one write is enough again.
  commands = {};
  Append(*log, 10);
  ISOZONE_ASSERT_OK(log->Sync());
  EXPECT_EQ(commands.flushes, 0);
  EXPECT_EQ(commands.durable_writes, 1);
}

TEST_P(DurabilityTest, WhatWasSyncedBehindVolatileBytesSurvivesAPowerCut) {
  for (const FileKind kind : {FileKind::kLog, FileKind::kData}) {
    for (int round = 0; round < 30; ++round) {
      SCOPED_TRACE(round);
      ISOZONE_ASSERT_OK(volume_.Mount(WithUnits()));
      content_.clear();
      auto writer = volume_.fs().Create("/file", {.kind = kind});
      ISOZONE_ASSERT_OK(writer.status());
      Append(**writer, 2 * kUnit + 500);
      ISOZONE_ASSERT_OK((*writer)->Sync());
      volume_.device().CutPower();
      (*writer).reset();
      volume_.Unmount();
      ISOZONE_ASSERT_OK(volume_.Mount(WithUnits()));
      const auto found = volume_.ReadFile("/file");
      ISOZONE_ASSERT_OK(found.status());
      EXPECT_TRUE(*found == content_) << found->size() << " of " << content_.size() << " bytes";
      ISOZONE_ASSERT_OK(volume_.fs().Unlink("/file"));
      volume_.Unmount();
      volume_.ExpectFsckClean();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfBothKinds, DurabilityTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "FuaCoversZone" : "FuaCoversItsCommand"; });

// A zone that somebody writes is no candidate of the collector.
TEST(ZoneStreamTest, AFullZoneIsNoLongerWrittenHoweverLongTheFileStaysOpen) {
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount());
  const auto writer = volume.fs().Create("/file", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(std::string(2 * volume.device().geometry().zone_capacity, 'x'))));
  ISOZONE_ASSERT_OK(writer->Sync());
  int full = 0;
  for (const ZoneView& zone : volume.fs().state().Zones()) {
    if (zone.use != ZoneUse::kData || zone.device.state != ZoneState::kFull) continue;
    ++full;
    EXPECT_FALSE(zone.writing) << "zone " << zone.device.zone.value();
  }
  EXPECT_EQ(full, 2);
}

}  // namespace
}  // namespace isozone
