// Other users hold active zones of the device: another namespace, or a tool.
#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr std::array kLifetimes = {Lifetime::kShort, Lifetime::kMedium, Lifetime::kLong, Lifetime::kExtreme};

class ForeignZones : public testing::Test {
 protected:
  // 12 zones may be active.
  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }

  // Writes files of all lifetimes, of which a zone takes about 12, so that many zones are partly written. Writes also a
  // log that is synced.
  void WriteSome(const std::string& directory, size_t files) {
    ISOZONE_ASSERT_OK(volume_.fs().CreateDirectories(directory));
    auto log = volume_.fs().Create(directory + "/log", {.kind = FileKind::kLog});
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    for (size_t i = 0; i < files; ++i) {
      const CreateOptions options = {.lifetime = kLifetimes[i % kLifetimes.size()]};
      ISOZONE_ASSERT_OK(volume_.WriteFile(directory + "/" + std::to_string(i), RandomBytes(random_, 60'000), options));
      ISOZONE_ASSERT_OK((*log)->Append(Bytes(RandomBytes(random_, 5'000))));
      ISOZONE_ASSERT_OK((*log)->Sync());
    }
    ISOZONE_ASSERT_OK((*log)->Close());
  }
  void ExpectNoHarm() {
    const Figures stats = volume_.fs().state().Stats();
    EXPECT_GT(stats.refused_writes, 0U);
    EXPECT_EQ(stats.write_retries, 0U);
    EXPECT_EQ(volume_.fs().state().Space().unusable_zones, 0U);
    EXPECT_EQ(volume_.fs().state().read_only_reason(), "");
    volume_.Unmount();
    volume_.ExpectFsckClean();
  }

  Random random_{1};
  TestVolume volume_;
};

TEST_F(ForeignZones, AreWaitedForAndNoZoneIsGivenUp) {
  WriteSome("/before", 8);
  volume_.device().SetForeignActive(12);
  std::jthread others([this] {
    while (volume_.fs().state().Stats().refused_writes == 0) std::this_thread::yield();
    volume_.device().SetForeignActive(0);
  });
  WriteSome("/meanwhile", 100);
  others.join();
  ExpectNoHarm();
}

TEST_F(ForeignZones, ThatStayAreLeftOutOfAccount) {
  WriteSome("/before", 8);
  volume_.device().SetForeignActive(7);  // more than are left beside the zones that hold what was written
  WriteSome("/meanwhile", 100);
  ISOZONE_ASSERT_OK(volume_.fs().state().Settle());  // a finish counts a moment after the write that it made room for
  EXPECT_GT(volume_.fs().state().Stats().zone_finishes, 0U) << "room is made for what is written next";
  ExpectNoHarm();
}

}  // namespace
}  // namespace isozone
