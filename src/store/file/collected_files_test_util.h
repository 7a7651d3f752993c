// A volume whose files are known, for tests of what GC does to them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/test_seed.h"
#include "testing/test_volume.h"

namespace isozone {

inline constexpr uint64_t kGcTestSeed = 20260102;

inline MountOptions WithGc(const std::string& scheme) {
  MountOptions options;
  options.gc.scheme = scheme;
  options.writer_memory = kMiB;
  options.checkpoint_after = 64 * kKiB;  // so that the journal does not fill small devices
  return options;
}

// A volume and what its files should hold.
class GcTest : public testing::Test {
 protected:
  explicit GcTest(const DeviceGeometry& geometry = SmallGeometry(40)) : volume_(geometry) {}

  void Mount(const std::string& scheme = "none") { ISOZONE_ASSERT_OK(volume_.Mount(WithGc(scheme))); }
  FileSystem& fs() { return volume_.fs(); }

  Status Write(const std::string& path, size_t size, DataClass data = {}) {
    std::string content = RandomBytes(random_, size);
    CreateOptions options;
    options.lifetime = data.lifetime;
    options.level = data.level;
    ISOZONE_RETURN_IF_ERROR(volume_.WriteFile(path, content, options));
    files_[path] = std::move(content);
    return Status::Ok();
  }
  void Remove(const std::string& path) {
    ISOZONE_ASSERT_OK(fs().Unlink(path));
    files_.erase(path);
  }
  // Writes `count` files that fill zones, and removes every second one.
  void MakeGarbage(int count = 16, size_t size = 200'001) {
    for (int i = 0; i < count; ++i) ISOZONE_ASSERT_OK(Write("/f" + std::to_string(i), size));
    for (int i = 0; i < count; i += 2) Remove("/f" + std::to_string(i));
    ISOZONE_ASSERT_OK(fs().SyncMetadata());
  }
  void ExpectAll() { ExpectFiles(files_); }
  void ExpectFiles(const std::map<std::string, std::string>& files) {
    EXPECT_EQ(fs().List("/")->size(), files.size());
    for (const auto& [path, content] : files) {
      const auto got = volume_.ReadFile(path);
      ASSERT_TRUE(got.ok()) << path << ": " << got.status().ToString();
      ASSERT_TRUE(*got == content) << path;
    }
  }
  CopyStats Collect(double free_percent = 100) {
    const auto done = fs().collection().Run(free_percent, {});
    EXPECT_TRUE(done.ok()) << done.status().ToString();
    return done.ok() ? *done : CopyStats();
  }
  std::set<uint32_t> ZonesOf(const std::string& path) {
    std::set<uint32_t> zones;
    EXPECT_TRUE(fs().state()
                    .VisitFiles([&](const FileDetails& file) {
                      if (file.paths != std::vector<std::string>{path}) return;
                      for (const FileExtent& e : file.extents) {
                        zones.insert(volume_.device().geometry().ZoneOf(e.device_offset).value());
                      }
                    })
                    .ok());
    return zones;
  }

  TestVolume volume_;
  Random random_{TestSeed(kGcTestSeed)};
  std::map<std::string, std::string> files_;
};

}  // namespace isozone
