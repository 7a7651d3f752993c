// Files of cohorts, in zones of their own and in shared ones: what CreateOptions say beforehand, on a device.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/file/collected_files_test_util.h"

namespace isozone {
namespace {

using testing::IsEmpty;

CreateOptions OfCohort(uint64_t cohort, bool own_zones = true, uint64_t expected_size = 0) {
  CreateOptions options;
  options.together_with = cohort;
  options.own_zones = own_zones;
  options.expected_size = expected_size;
  return options;
}

class CohortsTest : public GcTest {
 protected:
  explicit CohortsTest(const DeviceGeometry& geometry = SmallGeometry(40, kMiB, 16)) : GcTest(geometry) {}

  void Write(const std::string& path, size_t size, const CreateOptions& options) {
    files_[path] = RandomBytes(random_, size);
    ISOZONE_ASSERT_OK(volume_.WriteFile(path, files_[path], options));
  }
  // Returns the zones of all files whose paths begin with `a`.
  std::set<ZoneId> ZonesOfName(const std::string& a) {
    std::set<ZoneId> zones;
    for (const auto& [path, content] : files_) {
      if (!path.starts_with(a)) continue;
      const std::vector<ZoneOfFile> of_file = fs().state().ZonesOf(path).value();
      for (const ZoneOfFile& zone : of_file) zones.insert(zone.zone);
    }
    return zones;
  }
  std::set<ZoneId> Shared(const std::string& a, const std::string& b) {
    std::set<ZoneId> both;
    const std::set<ZoneId> of_b = ZonesOfName(b);
    for (const ZoneId zone : ZonesOfName(a)) {
      if (of_b.contains(zone)) both.insert(zone);
    }
    return both;
  }
};

TEST_F(CohortsTest, TheirZonesTakeNothingElseAndDieWithThem) {
  Mount();
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    Write("/kept" + n, 200'000, {});
    Write("/passing" + n, 60'000, OfCohort(1));
  }
  EXPECT_THAT(Shared("/kept", "/passing"), IsEmpty());
  EXPECT_EQ(ZonesOfName("/passing").size(), 1U);
  EXPECT_EQ(fs().state().RoomOf({}, 1).begun, 1U);
  EXPECT_EQ(fs().state().Stats().mixed_cohorts, 0U);
  // Since the zones hold nothing else, nothing is left to collect.
  const std::set<ZoneId> passing = ZonesOfName("/passing");
  for (int i = 0; i < 12; ++i) Remove("/passing" + std::to_string(i));
  ISOZONE_ASSERT_OK(fs().state().Settle());
  for (const ZoneId zone : passing) {
    EXPECT_EQ(fs().state().Zones()[zone.value()].device.write_pointer, 0U);
  }
  EXPECT_EQ(fs().state().RoomOf({}, 1).begun, 0U);
  ExpectAll();
}

TEST_F(CohortsTest, TheirZonesAreCountedWhetherTheyTakeMoreOrNot) {
  Mount();
  const uint64_t capacity = volume_.device().geometry().zone_capacity;
  Write("/a", capacity + capacity / 2, OfCohort(1));
  Write("/b", capacity / 4, OfCohort(2));
  EXPECT_EQ(fs().state().RoomOf({}, 1).begun, ZonesOfName("/a").size());
  ISOZONE_ASSERT_OK(fs().SealCohort(1));
  EXPECT_EQ(fs().state().RoomOf({}, 1).begun, ZonesOfName("/a").size());
  EXPECT_EQ(fs().state().RoomOf({}, 2).begun, 1U);
  EXPECT_EQ(fs().state().RoomOf({}, 3).begun, 0U);
  Remove("/a");
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().RoomOf({}, 1).begun, 0U);
  EXPECT_EQ(fs().state().RoomOf({}, 2).begun, 1U);
}

TEST_F(CohortsTest, WithoutOwnZonesTheyAreTogetherWhereTheyCanBe) {
  Mount();
  Write("/other", 100'000, {});
  CreateOptions options = OfCohort(1, /*own_zones=*/false);
  options.level = 2;
  Write("/a", 100'000, options);
  options.level = 3;
  options.lifetime = Lifetime::kLong;
  Write("/b", 100'000, options);
  EXPECT_EQ(ZonesOfName("/a"), ZonesOfName("/b"));
  EXPECT_THAT(Shared("/a", "/other"), IsEmpty());
  EXPECT_EQ(fs().state().Stats().mixed_classes, 0U);
}

TEST_F(CohortsTest, ASealedCohortBeginsNewZones) {
  Mount();
  Write("/first", 100'000, OfCohort(1));
  const ZoneRoom room = fs().state().RoomOf({}, 1);
  EXPECT_EQ(room.zones, 1U);
  EXPECT_EQ(room.bytes, volume_.device().geometry().zone_capacity - RoundUp(100'000, 4096));
  EXPECT_EQ(room.largest, room.bytes);
  ISOZONE_ASSERT_OK(fs().SealCohort(1));
  EXPECT_EQ(fs().state().RoomOf({}, 1), ZoneRoom{.begun = 1});
  Write("/second", 100'000, OfCohort(1));
  Write("/other", 100'000, {});
  EXPECT_THAT(Shared("/first", "/second"), IsEmpty());
  EXPECT_THAT(Shared("/first", "/other"), IsEmpty());
  EXPECT_TRUE(fs().SealCohort(0).Is(StatusCode::kInvalidArgument));
}

TEST_F(CohortsTest, AMountKnowsNothingOfThem) {
  Mount();
  Write("/own", 100'000, OfCohort(1));
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  EXPECT_EQ(fs().state().RoomOf({}, 1), ZoneRoom());
  Write("/other", 100'000, {});
  EXPECT_EQ(ZonesOfName("/own"), ZonesOfName("/other"));
  ExpectAll();
}

TEST_F(CohortsTest, OtherPoliciesDoNotKnowThem) {
  MountOptions options = WithGc("none");
  options.policy = "zenfs";
  ISOZONE_ASSERT_OK(volume_.Mount(options));
  Write("/own", 100'000, OfCohort(1));
  Write("/other", 100'000, {});
  EXPECT_EQ(ZonesOfName("/own"), ZonesOfName("/other"));
}

TEST_F(CohortsTest, AFileThatFitsIsNotSplit) {
  Mount();
  const uint64_t capacity = volume_.device().geometry().zone_capacity;
  {
    // Two files are written at a time, so that each begins a zone.
    const auto first = fs().Create("/first", {}).value();
    const auto second = fs().Create("/second", {}).value();
    files_["/first"] = RandomBytes(random_, capacity - 100'000);
    files_["/second"] = RandomBytes(random_, 200'000);
    ISOZONE_ASSERT_OK(first->Append(Bytes(files_["/first"])));
    ISOZONE_ASSERT_OK(second->Append(Bytes(files_["/second"])));
    ISOZONE_ASSERT_OK(first->Close());
    ISOZONE_ASSERT_OK(second->Close());
  }
  ASSERT_THAT(Shared("/first", "/second"), IsEmpty());
  Write("/whole", 200'000, OfCohort(0, false, 200'000));
  EXPECT_EQ(ZonesOfName("/whole"), ZonesOfName("/second"));
  Write("/any", 200'000, {});
  EXPECT_EQ(ZonesOfName("/any").size(), 2U) << "what is left of zones is used up as ever";
  ExpectAll();
}

TEST_F(CohortsTest, OwnZonesNeedANumber) {
  Mount();
  EXPECT_TRUE(fs().Create("/f", OfCohort(0)).status().Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(fs().OpenForAppend("/f", OfCohort(0)).status().Is(StatusCode::kInvalidArgument));
}

// There are so many cohorts that there is no space for each to have its own zones. Their files then share zones rather
// than be refused.
TEST_F(CohortsTest, AFullDeviceMixesThemRatherThanToRefuse) {
  const auto fill = [&](bool cohorts) {
    int files = 0;
    for (;; ++files) {
      const uint64_t cohort = cohorts ? 1 + static_cast<uint64_t>(files % 30) : 0;
      const std::string path = "/f" + std::to_string(files);
      files_[path] = RandomBytes(random_, 90'000);
      if (files % 17 == 0 && cohort != 0) {
        EXPECT_TRUE(fs().SealCohort(cohort).ok());
      }
      const Status status = volume_.WriteFile(path, files_[path], OfCohort(cohort, cohort != 0));
      if (status.ok()) continue;
      EXPECT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
      files_.erase(path);
      (void)fs().Unlink(path);
      return files;
    }
  };
  Mount();
  const int without = fill(false);
  ExpectAll();
  for (auto it = files_.begin(); it != files_.end();) Remove((it++)->first);
  ISOZONE_ASSERT_OK(fs().state().Settle());
  const int with = fill(true);
  EXPECT_GT(fs().state().Stats().mixed_cohorts, 0U);
  EXPECT_GE(with, without / 2) << "finishes throw away what is left of zones";
  ExpectAll();
}

class StripedCohortsTest : public CohortsTest {
 protected:
  static constexpr uint32_t kGroups = 8;
  void SetUp() override {
    Mount();
    ZoneGroups groups;
    groups.channel_of_group.assign(kGroups, 0);
    for (uint32_t zone = 0; zone < 40; ++zone) {
      groups.group_of_zone.push_back(static_cast<uint16_t>(zone % kGroups));
      groups.confidence_percent.push_back(100);
    }
    ISOZONE_ASSERT_OK(fs().groups().Set(groups));
    MountOptions options = WithGc("none");
    options.stripe_unit = 64 * kKiB;
    options.writer_memory = 4 * kMiB;
    ISOZONE_ASSERT_OK(volume_.Remount(options));
  }
};

TEST_F(StripedCohortsTest, ASmallFileIsInAsFewZonesAsItIsWorth) {
  Write("/tiny", 200'000, OfCohort(1, true, 200'000));
  EXPECT_EQ(ZonesOfName("/tiny").size(), 1U);
  Write("/small", 500'000, OfCohort(2, true, 500'000));
  EXPECT_LE(ZonesOfName("/small").size(), 2U);
  ExpectAll();
}

}  // namespace
}  // namespace isozone
