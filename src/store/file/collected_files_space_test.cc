// GC under a file system that has no space left: which writers wait, which fail, and that no zone is lost.
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/file/collected_files_test_util.h"

namespace isozone {
namespace {

class GcSpaceTest : public GcTest {
 protected:
  explicit GcSpaceTest(const DeviceGeometry& geometry = SmallGeometry(64, 256 * kKiB)) : GcTest(geometry) {}
  // Writes files until there is no space. Returns how many it has written.
  int FillUp(size_t size) {
    for (int i = 0;; ++i) {
      const std::string path = "/fill" + std::to_string(i);
      const Status status = Write(path, size);
      if (status.ok()) continue;
      EXPECT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
      Remove(path);
      return i;
    }
  }
};

// A full device with zones of three segments. A window is one segment. In each zone, a quarter is garbage.
class GcReserveTest : public GcSpaceTest {
 protected:
  GcReserveTest() : GcSpaceTest(SmallGeometry(24, 8 * kMiB)) {
    options_.gc.memory = 8 * kMiB;
    const Status status = volume_.Mount(options_);
    EXPECT_TRUE(status.ok()) << status.ToString();
    const int files = FillUp(500'000);
    for (int i = 0; i < files; i += 4) Remove("/fill" + std::to_string(i));
    EXPECT_TRUE(fs().SyncMetadata().ok());
    TakeWhatIsLeft();
  }
  // Writers take every block that they can get, so that the collector has what is reserved for it and no more.
  void TakeWhatIsLeft() {
    for (size_t size : {100'000, 4'000}) {
      for (;;) {
        const std::string path = "/left" + std::to_string(left_++);
        const Status status = Write(path, size);
        if (status.ok()) continue;
        EXPECT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
        Remove(path);
        EXPECT_TRUE(fs().SyncMetadata().ok());
        break;
      }
    }
  }
  // The garbage of some 18 zones, a quarter of each, can be won back, apart from what a few zones cannot give.
  void ExpectThatCollectionGains(uint64_t zones) {
    Collect();
    ISOZONE_ASSERT_OK(fs().state().Settle());
    EXPECT_GE(fs().state().Space().empty_zones, 4 + zones);
    EXPECT_TRUE(Write("/new", 500'000).ok());
    ExpectAll();
  }

  MountOptions options_ = WithGc("none");
  int left_ = 0;
};

TEST_F(GcReserveTest, AnInterruptedVictimCostsNoZone) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(fs().collection().Run(100, [](const CopyStats&, uint64_t) { return false; }).ok());
    ISOZONE_ASSERT_OK(fs().state().Settle());
    TakeWhatIsLeft();
  }
  ExpectThatCollectionGains(2);
}

TEST_F(GcReserveTest, AnUnmountOrAPowerCutInAVictimCostsNoZone) {
  for (int i = 0; i < 6; ++i) {
    const bool cut = i % 2 == 0;
    bool asked = false;
    const auto done = fs().collection().Run(100, [&](const CopyStats&, uint64_t) {
      if (cut && !std::exchange(asked, true)) volume_.device().CutPower();
      return cut;
    });
    EXPECT_EQ(done.ok() && done->read_errors + done->mismatches == 0, !cut);
    ISOZONE_ASSERT_OK(cut ? volume_.CutAndRemount() : volume_.Remount(options_));
    if (cut) ISOZONE_ASSERT_OK(volume_.Remount(options_));
    ISOZONE_ASSERT_OK(fs().state().Settle());
    TakeWhatIsLeft();
  }
  ExpectThatCollectionGains(2);
}

TEST_F(GcReserveTest, VictimsThatCannotBeReadToTheirEndCostNoZone) {
  std::set<ZoneId> bad;
  for (int i = 0; i < 6; ++i) {
    const GcPlan plan = fs().collection().Plan(/*all=*/true);
    ASSERT_FALSE(plan.victims.empty());
    const ZoneId zone = plan.victims.front().zone;
    EXPECT_TRUE(bad.insert(zone).second) << "tried again at once";
    // The second segment is being read, and the third one fails.
    bool asked = false;
    const auto done = fs().collection().Run(100, [&](const CopyStats& so_far, uint64_t) {
      if (!std::exchange(asked, true)) {
        volume_.device().FailNext(DeviceOp::kRead, zone, DeviceStatus::kUnrecoveredReadError);
      }
      return so_far.failed_zones == 0 && so_far.read_errors == 0;
    });
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(done->failed_zones, 1u);
    ISOZONE_ASSERT_OK(fs().state().Settle());
    TakeWhatIsLeft();
  }
  ExpectThatCollectionGains(1);
}

TEST_F(GcSpaceTest, WhoWaitsForSpaceIsServedByTheCollector) {
  for (const char* scheme : {"isozone", "lsm-zgc", "zenfs+", "full"}) {
    SCOPED_TRACE(scheme);
    if (files_.empty()) Mount(scheme);
    ISOZONE_ASSERT_OK(volume_.Remount(WithGc(scheme)));
    // This writes far more than the device holds, in files that do not die in the order in which they were written.
    for (int i = 0; i < 600; ++i) {
      const std::string path = "/f" + std::to_string(random_.Below(190));
      const DataClass data(i % 3 == 0 ? Lifetime::kShort : Lifetime::kLong, static_cast<int8_t>(i % 2));
      ISOZONE_ASSERT_OK(Write(path, random_.Between(20'000, 60'000), data));
    }
    ExpectAll();
    EXPECT_GT(fs().state().Stats().gc_zones, 0u);
    EXPECT_EQ(fs().state().Stats().gc_mismatches, 0u);
  }
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(GcSpaceTest, NoSpaceOnlyWhereNothingIsToBeGained) {
  Mount("isozone");
  const int files = FillUp(50'000);
  EXPECT_GT(files, 20);
  ExpectAll();
  // A little of every zone is garbage now. Writers can have what collecting it gains.
  for (int i = 0; i < files; i += 5) Remove("/fill" + std::to_string(i));
  for (int i = 0; i + 5 < files; i += 5) ISOZONE_ASSERT_OK(Write("/again" + std::to_string(i), 30'000));
  EXPECT_GT(fs().state().Stats().gc_space_waits, 0u);
  ExpectAll();
  FillUp(50'000);
  // Now there is nothing left to gain, apart from what checkpoints give back.
  ISOZONE_ASSERT_OK(fs().state().Settle());
  const uint32_t empty_zones = fs().state().Space().empty_zones;
  Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_LE(fs().state().Space().empty_zones, empty_zones + 1);
  ExpectAll();
  // Files that are removed give their space back.
  for (auto it = files_.begin(); it != files_.end();) {
    const std::string path = (it++)->first;
    Remove(path);
  }
  EXPECT_GE(FillUp(50'000), files - 4);
  ExpectAll();
}

TEST_F(GcSpaceTest, WithoutACollectorNobodyWaits) {
  Mount("none");
  FillUp(50'000);
  EXPECT_EQ(fs().state().Stats().gc_zones, 0u);
  EXPECT_EQ(fs().state().Stats().gc_rounds, 0u);
  ExpectAll();
}

// This is as in ZenFS, whose writers do not know of its collector.
TEST_F(GcSpaceTest, WritersOfZenfsFailAtOnce) {
  Mount("zenfs");
  const int files = FillUp(50'000);
  for (int i = 0; i < files; i += 5) Remove("/fill" + std::to_string(i));
  Status status;
  int again = 0;
  while (status.ok() && again < files) status = Write("/again" + std::to_string(again++), 30'000);
  EXPECT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
  EXPECT_LT(again, files / 5);
  EXPECT_EQ(fs().state().Stats().gc_space_waits, 0u);
  ISOZONE_ASSERT_OK(volume_.fs().Unlink("/again" + std::to_string(again - 1)));
  ISOZONE_ASSERT_OK(fs().collection().SetOptions(WithGc("isozone").gc));
  ISOZONE_EXPECT_OK(Write("/waited", 30'000));  // the collector makes space for it
  ExpectAll();
}

TEST_F(GcSpaceTest, FullResetsDeadZonesWhenSomebodyNeedsThem) {
  Mount("full");
  const int files = FillUp(50'000);
  for (int round = 0; round < 3; ++round) {
    while (!files_.empty()) Remove(files_.begin()->first);
    EXPECT_GE(FillUp(50'000), files - 15) << round << ": a zone less at most, which the journal may be in";
    ExpectAll();
  }
}

TEST_F(GcSpaceTest, ManyWritersAndReadersOnAFullDevice) {
  ISOZONE_ASSERT_OK(volume_.Mount(WithGc("isozone")));
  std::vector<std::thread> threads;
  for (int id = 0; id < 3; ++id) {
    threads.emplace_back([&, id] {
      Random random(TestSeed(kGcTestSeed) + static_cast<uint64_t>(id));
      std::map<std::string, std::string> mine;
      for (int i = 0; i < 120; ++i) {
        const std::string path = "/t" + std::to_string(id) + "." + std::to_string(random.Below(40));
        std::string content = RandomBytes(random, random.Between(10'000, 70'000));
        ISOZONE_ASSERT_OK(volume_.WriteFile(path, content));
        mine[path] = std::move(content);
        const auto some = std::next(mine.begin(), static_cast<ptrdiff_t>(random.Below(mine.size())));
        const auto got = volume_.ReadFile(some->first);
        ASSERT_TRUE(got.ok()) << got.status().ToString();
        ASSERT_TRUE(*got == some->second) << some->first;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Collect();
  EXPECT_GT(fs().state().Stats().gc_zones, 0u);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(GcSpaceTest, UnmountingEndsACollection) {
  Mount("isozone");
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 60; ++i) {
      ISOZONE_ASSERT_OK(Write("/f" + std::to_string(random_.Below(30)), random_.Between(20'000, 90'000)));
    }
    ISOZONE_ASSERT_OK(volume_.Remount(WithGc("isozone")));
    ExpectAll();
  }
}

}  // namespace
}  // namespace isozone
