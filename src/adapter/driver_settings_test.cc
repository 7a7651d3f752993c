#include "adapter/driver_settings.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/options.h>

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 62;

class DriverSettingsTest : public testing::Test {
 protected:
  DriverSettingsTest() {
    options_.num_levels = 5;
    options_.max_bytes_for_level_base = 256 * kMiB;
    options_.max_bytes_for_level_multiplier = 10;
    options_.target_file_size_base = 16 * kMiB;
  }
  // `mib`: what each level holds.
  LsmLimits Limits(std::vector<uint64_t> mib, bool dynamic, uint64_t free_bytes) const {
    for (uint64_t& one : mib) one *= kMiB;
    return DriverSettings(options_).LimitsFor(mib, dynamic, free_bytes);
  }

  rocksdb::Options options_;
};

TEST_F(DriverSettingsTest, LevelsAreSizedFromEitherEnd) {
  const LsmLimits down = Limits({0, 0, 0, 0, 7000}, false, kPlenty);
  EXPECT_EQ(down.base_level, 1);
  EXPECT_EQ(down.capacity_bytes[2], 2560 * kMiB);
  const LsmLimits up = Limits({0, 0, 0, 0, 7000}, true, kPlenty);
  EXPECT_EQ(up.base_level, 2);
  EXPECT_EQ(up.capacity_bytes[3], 700 * kMiB);
}

// For level 0 and the base level 64 + 16 MiB are needed where they are empty, and 11 x 16 MiB for a table.
TEST_F(DriverSettingsTest, LevelsGiveBackWhatCompactionsNeed) {
  options_.write_buffer_size = 64 * kMiB;
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 256 * kMiB).capacity_bytes[3], 700 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 156 * kMiB).capacity_bytes[3], 600 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 700, 7000}, true, 156 * kMiB).capacity_bytes[4], 7000 * kMiB);
}

TEST_F(DriverSettingsTest, ButKeepTheRootOfTheNextLevel) {
  EXPECT_EQ(Limits({0, 0, 0, 400, 6400}, true, 0).capacity_bytes[3], 320 * kMiB);  // 20 tables over 400
}

TEST_F(DriverSettingsTest, LittleSpaceMakesSweepsSmaller) {
  EXPECT_EQ(Limits({0, 0, 0, 0, 7000}, true, kPlenty).sweep_bytes, 64 * kMiB);
  EXPECT_EQ(Limits({0, 0, 0, 0, 7000}, true, 440 * kMiB).sweep_bytes, 10 * kMiB);
}

TEST_F(DriverSettingsTest, AFactorBetweenWholeNumbersCounts) {
  options_.max_bytes_for_level_multiplier = 2.5;
  EXPECT_EQ(Limits({0, 0, 0, 0, 0}, false, kPlenty).capacity_bytes[2], 640 * kMiB);
}

}  // namespace
}  // namespace isozone
