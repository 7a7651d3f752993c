// Files that are striped over zones of different groups: where their parts go, and what failures and power cuts leave.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/file/stripe_test_util.h"

namespace isozone {
namespace {

TEST_F(StripeTest, AFileIsSpreadOverZonesOfDifferentGroups) {
  MountWithGroups(Striped());
  const std::string content = Content(1000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  EXPECT_EQ(ZonesOf("/f").size(), 4U);
  EXPECT_EQ(GroupsOf("/f").size(), 4U);
  // The pieces are whole units. Two of them follow one another where the other lanes are still writing.
  EXPECT_EQ(Extents("/f")[0].length % (64 * kKiB), 0U);
  ExpectContent("/f", content);
  ISOZONE_ASSERT_OK(volume_.Remount(Striped()));
  ExpectContent("/f", content);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(StripeTest, AFileTakesNoMoreZonesThanItHasUnits) {
  MountWithGroups(Striped(8));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", Content(150000)));
  EXPECT_LE(ZonesOf("/f").size(), 3U);  // fewer, where a zone has taken a unit before the next one comes
}

TEST_F(StripeTest, WithoutGroupsAFileTakesOneZone) {
  ISOZONE_ASSERT_OK(volume_.Mount(Striped()));
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", Content(500000)));
  EXPECT_EQ(ZonesOf("/f").size(), 1U);
}

TEST_F(StripeTest, TheBaselineWritesOneZoneAtATime) {
  MountOptions options = Striped();
  options.policy = "zenfs";
  options.write_buffer = 64 * kKiB;
  MountWithGroups(options);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", Content(500000)));
  EXPECT_EQ(ZonesOf("/f").size(), 1U);
}

TEST_F(StripeTest, FilesOfOneLifetimeFillTheSameZones) {
  MountWithGroups(Striped());
  std::set<uint32_t> zones;
  for (int i = 0; i < 8; ++i) {
    const std::string path = "/f" + std::to_string(i);
    ISOZONE_ASSERT_OK(volume_.WriteFile(path, Content(256 * kKiB), {.lifetime = Lifetime::kMedium}));
    zones.merge(ZonesOf(path));
  }
  // The files are 2 MiB in zones of 768 KiB, which hold 4 units, 4 at a time; other files start in other groups.
  EXPECT_LE(zones.size(), 8U);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/long", Content(256 * kKiB), {.lifetime = Lifetime::kLong}));
  for (const uint32_t zone : ZonesOf("/long")) EXPECT_FALSE(zones.contains(zone)) << "mixes lifetimes";
}

TEST_F(StripeTest, AFlushAndACompactionKeepApart) {
  MountWithGroups(Striped(2));  // of 8 groups the journal has two and the log one
  auto compaction = fs().Create("/c", {.io_class = IoClass::kCompactionWrite}).value();
  auto flush = fs().Create("/f", {.io_class = IoClass::kFlush}).value();
  auto wal = fs().Create("/w", {.kind = FileKind::kLog, .io_class = IoClass::kWal}).value();
  ISOZONE_ASSERT_OK(wal->Append(Bytes("log")));
  ISOZONE_ASSERT_OK(wal->Sync());
  const std::string content = Content(3 * 64 * kKiB);  // faster than one zone takes it
  for (int i = 0; i < 2; ++i) {
    ISOZONE_ASSERT_OK(flush->Append(Bytes(content)));
    ISOZONE_ASSERT_OK(compaction->Append(Bytes(content)));
  }
  ISOZONE_ASSERT_OK(flush->Close());
  ISOZONE_ASSERT_OK(compaction->Close());
  ISOZONE_ASSERT_OK(wal->Close());
  std::set<uint32_t> flush_groups = GroupsOf("/f"), compaction_groups = GroupsOf("/c"), wal_groups = GroupsOf("/w");
  EXPECT_EQ(flush_groups.size(), 2U);
  EXPECT_EQ(compaction_groups.size(), 2U);
  for (const uint32_t group : compaction_groups) {
    EXPECT_FALSE(flush_groups.contains(group) || wal_groups.contains(group)) << group;
  }
}

TEST_F(StripeTest, AFailedPartIsRewrittenElsewhere) {
  MountWithGroups(Striped());
  const std::string content = Content(400000);
  auto writer = fs().Create("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(writer->Sync());
  const std::set<uint32_t> zones = ZonesOf("/f");
  volume_.device().SetZoneState(ZoneId(*zones.begin()), ZoneState::kReadOnly);
  const std::string more = Content(400000);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(more)));
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(fs().state().Stats().write_retries, 1U);
  ExpectContent("/f", content + more);
  ISOZONE_ASSERT_OK(volume_.Remount(Striped()));
  ExpectContent("/f", content + more);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// A unit is cut in two where a zone ends, and both writes fail. Both parts are rewritten, one behind the other.
TEST_F(StripeTest, BothFailedPartsOfAUnitAreRewrittenElsewhere) {
  std::set<uint32_t> failing;
  for (const uint64_t failures : {1U, 2U}) {  // the first time shows which zones the parts go to
    TestVolume volume(SmallGeometry(64, kMiB, 32));
    std::swap(volume, volume_);
    MountWithGroups(Striped(2));
    auto writer = fs().Create("/f", {}).value();
    std::string content;
    const auto append = [&](size_t size) {
      content += Content(size);
      return writer->Append(Bytes(content).last(size));
    };
    for (const size_t size : {32, 32, 22 * 64}) {  // leaves room for half a unit in each of two zones
      ISOZONE_ASSERT_OK(append(size * kKiB));
      ISOZONE_ASSERT_OK(writer->Sync());
    }
    const std::set<uint32_t> zones = ZonesOf("/f");
    ASSERT_EQ(zones.size(), 2U);
    failing.insert(zones.begin(), zones.end());
    for (const uint32_t zone : failing) volume_.device().SetZoneState(ZoneId(zone), ZoneState::kReadOnly);
    ISOZONE_ASSERT_OK(append(64 * kKiB));
    ISOZONE_ASSERT_OK(writer->Close());
    writer.reset();
    EXPECT_GE(fs().state().Stats().write_retries, failures);
    ExpectContent("/f", content);
    std::ranges::set_difference(ZonesOf("/f"), zones, std::inserter(failing, failing.end()));
    ISOZONE_ASSERT_OK(volume_.Remount(Striped()));
    ExpectContent("/f", content);
    volume_.Unmount();
    volume_.ExpectFsckClean();
  }
}

TEST_F(StripeTest, APowerCutLeavesWhatWasSyncedAndNoHole) {
  MountWithGroups(Striped());
  const std::string content = Content(700000);
  auto writer = fs().Create("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content).first(300000)));
  ISOZONE_ASSERT_OK(writer->Sync());
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content).subspan(300000)));
  volume_.device().CutPower();
  EXPECT_FALSE(writer->Sync().ok());
  writer.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  const std::string found = volume_.ReadFile("/f").value();
  EXPECT_GE(found.size(), 300000U);
  EXPECT_EQ(found, content.substr(0, found.size()));
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(StripeTest, WhatIsOnItsWayIsReadable) {
  MountWithGroups(Striped());
  const std::string content = Content(450000);
  auto writer = fs().Create("/f", {}).value();
  for (size_t at = 0; at < content.size(); at += 1000) {
    ISOZONE_ASSERT_OK(writer->Append(Bytes(content).subspan(at, std::min<size_t>(1000, content.size() - at))));
    if (at % 50000 == 0) ExpectContent("/f", content.substr(0, at + 1000));
  }
}

class FewActiveZonesTest : public StripeTest {
 protected:
  FewActiveZonesTest() : StripeTest(/*max_active=*/10) {}
};

TEST_F(FewActiveZonesTest, AFileLeavesZonesForOthers) {
  MountWithGroups(Striped(8));
  auto first = fs().Create("/1", {}).value();
  ISOZONE_ASSERT_OK(first->Append(Bytes(Content(600000))));
  const auto writing = [this] {
    const auto zones = fs().state().Zones();
    return std::count_if(zones.begin(), zones.end(),
                         [](const ZoneView& zone) { return zone.writing && zone.use == ZoneUse::kData; });
  };
  // There are 10 active zones, of which 7 are reserved for others than data. The file has one, and two are spared.
  EXPECT_EQ(writing(), 1);
}

// One thread that has many files open must not wait for something that only it could do.
TEST_F(FewActiveZonesTest, ManyWritersOfOneThreadTakeTurns) {
  MountWithGroups(Striped(8));
  std::vector<std::unique_ptr<FileWriter>> writers;
  std::vector<std::string> contents;
  for (int i = 0; i < 12; ++i) {
    const FileKind kind = i % 3 == 0 ? FileKind::kLog : FileKind::kData;
    writers.push_back(fs().Create("/f" + std::to_string(i), {.kind = kind}).value());
    contents.push_back(Content(200000));
  }
  for (size_t at = 0; at < 200000; at += 50000) {
    for (size_t i = 0; i < writers.size(); ++i) {
      ISOZONE_ASSERT_OK(writers[i]->Append(Bytes(contents[i]).subspan(at, 50000)));
    }
  }
  for (auto& writer : writers) ISOZONE_ASSERT_OK(writer->Close());
  for (size_t i = 0; i < writers.size(); ++i) ExpectContent("/f" + std::to_string(i), contents[i]);
}

}  // namespace
}  // namespace isozone
