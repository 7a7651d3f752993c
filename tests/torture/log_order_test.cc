// A power cut in each command of what writes logs without ever syncing one: what is left is a prefix of what was
// appended, over all logs.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/fine.h"
#include "model/quiet_log.h"
#include "model/volume.h"
#include "torture/unsynced_logs.h"

namespace isozone::torture {
namespace {

using model::Volume;

constexpr int kSteps = 300;

MountOptions Options() {
  MountOptions options;
  options.write_buffer = 16 * kKiB;
  return options;
}

// Ends with the first error.
Status WriteLogs(FileSystem& fs, UnsyncedLogs& logs) {
  ISOZONE_RETURN_IF_ERROR(logs.Begin(fs));
  for (int step = 0; step < kSteps; ++step) ISOZONE_RETURN_IF_ERROR(logs.Step(fs));
  return Status::Ok();
}

class LogOrder : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(LogOrder, APowerCutLeavesAPrefixOverAllLogs) {
  const auto [in_file, fua_covers_zone] = GetParam();
  DeviceGeometry geometry;
  geometry.zone_count = 32;
  geometry.zone_size = geometry.zone_capacity = 256 * kKiB;
  geometry.max_open_zones = geometry.max_active_zones = 12;
  geometry.optimal_write = geometry.block_size;
  geometry.fua_covers_zone = fua_covers_zone;
  const QuietLog quiet;
  std::set<std::map<uint64_t, uint64_t>> outcomes;
  bool ended = false;
  for (uint64_t cut = 0; !ended; ++cut) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    auto volume = in_file ? Volume::CreateInFile(geometry) : Volume::Create(geometry);
    ASSERT_FINE(volume.status());
    ASSERT_FINE(volume->Format());
    FaultPlan faults;
    faults.seed = cut + 1;
    ASSERT_FINE(volume->Mount(Options(), faults));
    volume->device().CutPowerAfter(cut);
    UnsyncedLogs logs("", 1);
    ended = WriteLogs(volume->fs(), logs).ok() && volume->powered();
    logs.Abandon();
    ASSERT_FINE(volume->Unmount());
    ASSERT_FINE(volume->Check());
    ASSERT_FINE(volume->Mount(Options()));
    const auto left = logs.Left(volume->fs());
    ASSERT_FINE(left.status());
    outcomes.insert(*left);
    ASSERT_FINE(volume->Unmount());
  }
  EXPECT_GT(outcomes.size(), 8U) << "the cuts are to leave different states";
}

INSTANTIATE_TEST_SUITE_P(All, LogOrder, ::testing::Combine(::testing::Bool(), ::testing::Bool()), [](const auto& info) {
  return std::string(std::get<0>(info.param) ? "Kept" : "NotKept") +
         (std::get<1>(info.param) ? "FuaCoversZone" : "FuaCoversItself");
});

}  // namespace
}  // namespace isozone::torture
