// RocksDB on top of the power cuts, in small; `make torture` runs thousands through isozone_torture.

#include <gtest/gtest.h>

#include "model/volume.h"
#include "torture/torture.h"

namespace isozone::torture {
namespace {

TEST(RocksDbPowerCut, SyncedWritesSurviveAndUnsyncedOnesAreAPrefix) {
  Options options;
  options.seed = TestSeed();
  options.cuts = 100;
  const auto report = RunPowerCutsOnRocksDb(options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(100u, report->cuts);
  EXPECT_GT(report->in_mount, 0u);
  EXPECT_GT(report->bytes_collected, 0u);
  EXPECT_GT(report->steered, 0u);
  EXPECT_GT(report->unsynced, 25u);
  EXPECT_GT(report->several_logs, 5u);
}

}  // namespace
}  // namespace isozone::torture
