// Which files lie in a zone, and in which zones a file lies, compared with the extents of all files and with the live
// bytes that zones report.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/file/collected_files_test_util.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CreateOptions kLogFile{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};

class ZoneContentsTest : public GcTest {
 protected:
  using Contents = std::map<uint32_t, std::map<std::string, uint64_t>>;  // bytes by zone and by name

  FileSystemState& state() { return fs().state(); }
  Contents ByZone() {
    Contents contents;
    for (const ZoneView& zone : state().Zones()) {
      const auto files = state().FilesIn(zone.device.zone);
      EXPECT_TRUE(files.ok()) << files.status().ToString();
      uint64_t inode = 0;
      for (const FileInZone& file : *files) {
        EXPECT_GT(file.inode, inode) << "in order of inode";
        inode = file.inode;
        for (const std::string& path : file.paths) contents[zone.device.zone.value()][path] = file.bytes;
      }
    }
    return contents;
  }
  Contents ByFile() {
    Contents contents;
    EXPECT_TRUE(state()
                    .VisitFiles([&](const FileDetails& file) {
                      for (const std::string& path : file.paths) {
                        const auto zones = state().ZonesOf(path);
                        EXPECT_TRUE(zones.ok()) << zones.status().ToString();
                        for (const ZoneOfFile& zone : *zones) contents[zone.zone.value()][path] = zone.bytes;
                      }
                    })
                    .ok());
    return contents;
  }
  Contents ByExtent() {
    Contents contents;
    EXPECT_TRUE(state()
                    .VisitFiles([&](const FileDetails& file) {
                      for (const FileExtent& extent : file.extents) {
                        const ZoneId zone = volume_.device().geometry().ZoneOf(extent.device_offset);
                        for (const std::string& path : file.paths) contents[zone.value()][path] += extent.length;
                      }
                    })
                    .ok());
    return contents;
  }
  // Expects that everything that lives belongs to a file that has a name.
  void ExpectAllIsTold() {
    EXPECT_EQ(ByZone(), ByFile());
    for (const ZoneView& zone : state().Zones()) {
      uint64_t bytes = 0;
      const std::vector<FileInZone> files = state().FilesIn(zone.device.zone).value();
      for (const FileInZone& file : files) bytes += file.bytes;
      if (zone.use != ZoneUse::kMetadata) {
        EXPECT_EQ(bytes, zone.live) << "zone " << zone.device.zone.value();
      }
    }
  }
  uint64_t BytesOf(const std::string& path) {
    uint64_t bytes = 0;
    const std::vector<ZoneOfFile> zones = state().ZonesOf(path).value();
    for (const ZoneOfFile& zone : zones) bytes += zone.bytes;
    return bytes;
  }
  void MountStriped() {
    Mount();
    const uint32_t zones = volume_.device().geometry().zone_count;
    ZoneGroups groups;
    groups.channel_of_group.assign(4, 0);
    for (uint32_t zone = 0; zone < zones; ++zone) {
      groups.group_of_zone.push_back(static_cast<uint16_t>(zone % 4));
      groups.confidence_percent.push_back(100);
    }
    ISOZONE_ASSERT_OK(fs().groups().Set(groups));
    MountOptions options = WithGc("none");
    options.stripe_unit = 64 * kKiB;
    ISOZONE_ASSERT_OK(volume_.Remount(options));
  }
};

TEST_F(ZoneContentsTest, StripedFilesAreToldZoneByZone) {
  MountStriped();
  for (int i = 0; i < 6; ++i) ISOZONE_ASSERT_OK(Write("/f" + std::to_string(i), 1'234'567));
  ISOZONE_ASSERT_OK(fs().Link("/f0", "/also"));
  ExpectAllIsTold();
  EXPECT_EQ(ByZone(), ByExtent());
  EXPECT_GT(state().ZonesOf("/f0")->size(), 1u);
  EXPECT_EQ(BytesOf("/also"), 1'234'567u);
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAllIsTold();
}

TEST_F(ZoneContentsTest, ACollectionMovesFilesToOtherZones) {
  Mount();
  MakeGarbage();
  const Contents before = ByZone();
  EXPECT_GT(Collect().bytes_copied, 0u);
  ISOZONE_ASSERT_OK(state().Settle());
  EXPECT_NE(ByZone(), before);
  EXPECT_EQ(ByZone(), ByExtent());
  ExpectAllIsTold();
}

TEST_F(ZoneContentsTest, ALogIsToldWhileItGrowsAndAfterwards) {
  Mount();
  auto log = fs().Create("/000001.log", kLogFile).value();
  EXPECT_THAT(state().ZonesOf("/000001.log").value(), IsEmpty());
  uint64_t known = 0;
  for (int i = 0; i < 40; ++i) {
    ISOZONE_ASSERT_OK(log->Append(Bytes(std::string(50'000, 'x'))));
    ISOZONE_ASSERT_OK(log->Sync());
    EXPECT_GT(BytesOf("/000001.log"), known + 50'000);
    known = BytesOf("/000001.log");
    EXPECT_EQ(state().AllocatedBytes("/000001.log").value(), known);
  }
  EXPECT_GT(state().ZonesOf("/000001.log")->size(), 2u);
  ExpectAllIsTold();
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  ExpectAllIsTold();
  EXPECT_EQ(BytesOf("/000001.log"), state().AllocatedBytes("/000001.log").value());
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(BytesOf("/000001.log"), known);
  ExpectAllIsTold();
}

// There are two logs in one zone, one behind the other. The first ends where the second begins, though nobody has
// closed it.
TEST_F(ZoneContentsTest, AnOpenLogEndsWhereTheNextOneBegins) {
  DeviceGeometry geometry = SmallGeometry(40, kMiB, /*max_active=*/9);
  TestVolume volume(geometry);
  ISOZONE_ASSERT_OK(volume.Mount(WithGc("none")));
  std::vector<std::unique_ptr<FileWriter>> logs;
  for (int i = 0; i < 12; ++i) {
    logs.push_back(volume.fs().Create("/log" + std::to_string(i), kLogFile).value());
    ISOZONE_ASSERT_OK(logs.back()->Append(Bytes(std::string(9'000, 'x'))));
    ISOZONE_ASSERT_OK(logs.back()->Sync());
  }
  for (const ZoneView& zone : volume.fs().state().Zones()) {
    uint64_t bytes = 0;
    const std::vector<FileInZone> files = volume.fs().state().FilesIn(zone.device.zone).value();
    for (const FileInZone& file : files) bytes += file.bytes;
    if (zone.use == ZoneUse::kLog) {
      EXPECT_EQ(bytes, zone.live) << "zone " << zone.device.zone.value();
    }
  }
  for (const auto& log : logs) ISOZONE_ASSERT_OK(log->Close());
}

// What the file still has in zones lives as long as the handle, but no path leads to it.
TEST_F(ZoneContentsTest, AFileWithoutANameIsInNoZone) {
  Mount();
  ISOZONE_ASSERT_OK(Write("/f", 100'000));
  ISOZONE_ASSERT_OK(Write("/g", 100'000));
  const ZoneId zone = state().ZonesOf("/f")->front().zone;
  const auto reader = fs().OpenForRead("/f").value();
  Remove("/f");
  EXPECT_TRUE(state().ZonesOf("/f").status().Is(StatusCode::kNotFound));
  const auto files = state().FilesIn(zone).value();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files[0].paths, ElementsAre("/g"));
  EXPECT_EQ(state().Zones()[zone.value()].live, 200'000u);
}

TEST_F(ZoneContentsTest, WhatIsNotSyncedIsNotTold) {
  Mount();
  const auto writer = fs().Create("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(std::string(2 * kMiB, 'x'))));
  EXPECT_THAT(state().ZonesOf("/f").value(), IsEmpty());
  ISOZONE_ASSERT_OK(writer->Sync());
  EXPECT_EQ(BytesOf("/f"), 2 * kMiB);
}

TEST_F(ZoneContentsTest, WhatDoesNotExistIsAnError) {
  Mount();
  EXPECT_TRUE(state().FilesIn(ZoneId(40)).status().Is(StatusCode::kInvalidArgument));
  EXPECT_THAT(state().FilesIn(ZoneId(39)).value(), IsEmpty());
  EXPECT_TRUE(state().ZonesOf("/none").status().Is(StatusCode::kNotFound));
  EXPECT_THAT(state().ZonesOf("/").value(), IsEmpty());
}

}  // namespace
}  // namespace isozone
