// The power cuts of `make test`; `make torture` runs many more through isozone_torture.
#include "torture/torture.h"

#include <gtest/gtest.h>

#include "model/volume.h"

namespace isozone::torture {
namespace {

void RunCuts(size_t threads, uint64_t cuts) {
  Options options;
  options.seed = TestSeed();
  options.threads = threads;
  options.cuts = cuts;
  const auto report = RunPowerCuts(options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_GE(report->cuts, cuts);
  EXPECT_GT(report->in_mount, 0u);
  EXPECT_GT(report->bytes_collected, 0u);
  EXPECT_GT(report->times_full, 0u);
  EXPECT_GT(report->copies_lost, 0u);
  EXPECT_GT(report->unsynced, cuts / 3);
  EXPECT_GT(report->several_logs, cuts / 20);
}

TEST(PowerCut, OneClient) { RunCuts(1, 1600); }

TEST(PowerCut, ThreeClientsAtTheSameTime) { RunCuts(3, 600); }

TEST(PowerCut, InEveryCommandFromTheFirst) {
  const auto report = CutEveryCommand(TestSeed());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_GE(report->in_format, 2u);  // the journal and the superblock of an empty device
  EXPECT_GT(report->in_mount, 3u);
}

}  // namespace
}  // namespace isozone::torture
