// Storms of faults: random work on a device that fails at random.
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/client.h"
#include "model/fine.h"
#include "model/quiet_log.h"
#include "model/volume.h"

namespace isozone::torture {
namespace {

using model::Volume;

// A random workload on a device with faults: errors are returned, and what can be read is right, then and after a mount
// without new faults.
class FaultStorm : public ::testing::Test {
 protected:
  // `each_step` is called before every operation.
  void Run(const FaultPlan& faults, bool at_leisure, const std::function<void(Volume&)>& each_step) {
    auto volume = Volume::Create(model::RandomGeometry(random_, kMiB), /*timing=*/at_leisure && random_.Chance(0.3));
    ASSERT_FINE(volume.status());
    ASSERT_FINE(volume->Format());
    ASSERT_FINE(volume->Mount({}));
    ASSERT_FINE(volume->fs().groups().Set(model::RandomGroups(random_, volume->device().geometry())));
    ASSERT_FINE(volume->Unmount());
    model::Oracle oracle;
    const Status began = volume->Mount(model::RandomMountOptions(random_, at_leisure), faults);
    if (began.Is(StatusCode::kIoError)) return;  // the metadata could not be read
    ASSERT_FINE(began);
    ASSERT_NO_FATAL_FAILURE(Work(*volume, oracle, each_step));
    (void)volume->Unmount();
    const Status mounted = volume->Mount({});
    if (!mounted.ok() && mounted.message().find("is offline") != std::string::npos) return;  // metadata that is gone
    ASSERT_FINE(mounted);
    ++mounted_again_;
    const auto found = model::Collect(volume->fs(), "", /*tolerate_unreadable=*/true);
    ASSERT_FINE(found.status());
    ASSERT_FINE(oracle.CheckAfterPowerCut(*found));
    ASSERT_FINE(volume->Unmount());
  }

  const QuietLog quiet_;
  const uint64_t seed_ = TestSeed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "ISOZONE_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_};
  uint64_t io_errors_ = 0;
  int mounted_again_ = 0;

 private:
  void Work(Volume& volume, model::Oracle& oracle, const std::function<void(Volume&)>& each_step) {
    model::ClientOptions options;
    options.max_append = 64 * kKiB;
    options.live_target = 6 * kMiB;
    options.expects_faults = true;
    model::Client client(volume.fs(), oracle, random_.Next(), options);
    Status status;
    for (int i = 0; i < 3000 && status.ok(); ++i) {
      each_step(volume);
      status = client.Step();
    }
    // The first failed metadata write ends the writing, and says so.
    if (!status.ok()) {
      EXPECT_TRUE(status.Is(StatusCode::kReadOnly) || status.Is(StatusCode::kIoError)) << status.ToString();
      EXPECT_NE("", volume.fs().state().read_only_reason()) << status.ToString();
    }
    io_errors_ += client.counters().io_errors;
  }
};

TEST_F(FaultStorm, WhatCanBeReadIsRight) {
  for (int storm = 0; storm < 60; ++storm) {
    FaultPlan faults;
    faults.seed = random_.Next();
    faults.read_error = random_.Chance(0.5) ? 0.001 : 0;
    faults.write_error = random_.Chance(0.7) ? 0.003 : 0;
    faults.zone_read_only = random_.Chance(0.5) ? 0.0005 : 0;
    faults.zone_offline = random_.Chance(0.3) ? 0.0002 : 0;
    SCOPED_TRACE(fmt::format("storm {}: read errors {}, write errors {}, zones read-only {}, offline {}", storm,
                             faults.read_error, faults.write_error, faults.zone_read_only, faults.zone_offline));
    ASSERT_NO_FATAL_FAILURE(Run(faults, /*at_leisure=*/true, [](Volume&) {}));
  }
  EXPECT_GT(io_errors_, 0u);
  EXPECT_GT(mounted_again_, 30);
}

// Many faults, and none of the metadata, which would end it.
TEST_F(FaultStorm, WhatCanBeReadIsRightWhereOnlyZonesOfFilesFail) {
  for (int storm = 0; storm < 40; ++storm) {
    SCOPED_TRACE("storm " + std::to_string(storm));
    const double often = random_.Chance(0.5) ? 0.01 : 0.1;
    ASSERT_NO_FATAL_FAILURE(Run({}, /*at_leisure=*/false, [&](Volume& volume) {
      if (!random_.Chance(often)) return;
      std::vector<ZoneId> zones;
      for (const ZoneView& zone : volume.fs().state().Zones()) {
        if (zone.use == ZoneUse::kData || zone.use == ZoneUse::kLog) zones.push_back(zone.device.zone);
      }
      if (zones.empty()) return;
      const ZoneId zone = zones[random_.Below(zones.size())];
      const uint64_t draw = random_.Below(200);
      if (draw < 120) {
        volume.device().FailNext(DeviceOp::kWrite, zone, DeviceStatus::kWriteFault);
      } else if (draw < 197) {
        volume.device().FailNext(DeviceOp::kRead, zone, DeviceStatus::kUnrecoveredReadError);
      } else {
        volume.device().SetZoneState(zone, draw < 199 ? ZoneState::kReadOnly : ZoneState::kOffline);
      }
    }));
  }
  EXPECT_GT(io_errors_, 0u);
  EXPECT_GT(mounted_again_, 30);
}

}  // namespace
}  // namespace isozone::torture
