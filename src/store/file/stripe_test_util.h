// StripeTest: a small file system whose zones are of several groups, for tests of striped files and logs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/test_volume.h"

namespace isozone {

class StripeTest : public testing::Test {
 protected:
  static constexpr uint32_t kGroups = 8;

  static MountOptions Striped(uint32_t width = 4) {
    MountOptions options;
    options.stripe_width = width;
    options.stripe_unit = 64 * kKiB;
    return options;
  }

  // By itself a command takes far longer than an append, so that a writer finds its zones busy even on a busy machine.
  explicit StripeTest(uint32_t max_active = 32, uint64_t zone_size = kMiB, uint64_t latency_us = 5'000)
      : volume_(SmallGeometry(64, zone_size, max_active), latency_us) {}

  // Mounts with known groups: each zone belongs to the next group in turn. `zone_bandwidth` is in bytes per second; 0:
  // not measured.
  void MountWithGroups(const MountOptions& options, uint64_t zone_bandwidth = 0) {
    ISOZONE_ASSERT_OK(volume_.Mount());
    ZoneGroups groups;
    groups.zone_bandwidth = zone_bandwidth;
    groups.channel_of_group.assign(kGroups, 0);
    for (uint32_t zone = 0; zone < 64; ++zone) {
      groups.group_of_zone.push_back(static_cast<uint16_t>(zone % kGroups));
      groups.confidence_percent.push_back(100);
    }
    ISOZONE_ASSERT_OK(fs().groups().Set(groups));
    ISOZONE_ASSERT_OK(volume_.Remount(options));
  }

  FileSystem& fs() { return volume_.fs(); }
  std::string Content(size_t size) { return RandomBytes(random_, size); }

  std::vector<FileExtent> Extents(const std::string& path) {
    std::vector<FileExtent> extents;
    EXPECT_TRUE(fs().state()
                    .VisitFiles([&](const FileDetails& file) {
                      if (file.paths == std::vector<std::string>{path}) extents = file.extents.Expand();
                    })
                    .ok());
    return extents;
  }
  std::set<uint32_t> ZonesOf(const std::string& path) {
    std::set<uint32_t> zones;
    for (const FileExtent& extent : Extents(path)) {
      zones.insert(volume_.device().geometry().ZoneOf(extent.device_offset).value());
    }
    return zones;
  }
  std::set<uint32_t> GroupsOf(const std::string& path) {
    std::set<uint32_t> groups;
    for (const uint32_t zone : ZonesOf(path)) groups.insert(zone % kGroups);
    return groups;
  }
  void ExpectContent(const std::string& path, const std::string& content) {
    const auto found = volume_.ReadFile(path);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_TRUE(*found == content) << path;
  }

  TestVolume volume_;
  Random random_{1};
};

}  // namespace isozone
