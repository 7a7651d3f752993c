// Streams of one kind, held against the model of the flash itself.
#include "sim/device_times.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "nand/timing_model.h"

namespace isozone {
namespace {

constexpr uint64_t kStreamBytes = 48 * kMiB;  // of each zone
constexpr uint64_t kPiece = 4 * kMiB;
constexpr uint64_t kCommand = 192 * kKiB;
constexpr uint32_t kDepth = 8;  // commands of a zone in flight

MATCHER_P2(WithinPercent, percent, of, "") { return std::abs(static_cast<double>(arg) - of) <= of * percent / 100.0; }

Profile ProfileNamed(const std::string& name) {
  Result<Profile> profile = LoadProfile(name);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return *profile;
}

// When the last byte of a stream in each of the zones [0, zones) is there.
double ModelledSeconds(const Profile& profile, TimingOpKind kind, uint32_t zones) {
  TimingModel model(profile);
  std::vector<uint64_t> next(zones, 0);
  const auto submit = [&](int64_t now_ns, uint32_t zone) {
    if (next[zone] >= kStreamBytes) return;
    model.Submit(now_ns, {.kind = kind, .zone = zone, .offset = next[zone], .length = kCommand}, zone);
    next[zone] += kCommand;
  };
  for (uint32_t i = 0; i < kDepth; ++i) {
    for (uint32_t zone = 0; zone < zones; ++zone) submit(0, zone);
  }
  int64_t last_ns = 0;
  std::vector<TimingCompletion> completed;
  for (int64_t bound = model.NextCompletionBound(); bound != CommandModel::kNever;
       bound = model.NextCompletionBound()) {
    completed.clear();
    model.AdvanceTo(bound, completed);
    for (const TimingCompletion& done : completed) {
      last_ns = std::max(last_ns, done.time_ns);
      submit(bound, static_cast<uint32_t>(done.ticket));
    }
  }
  return static_cast<double>(last_ns) / kSecondNs;
}

double CoarseSeconds(const Profile& profile, TimingOpKind kind, uint32_t zones) {
  DeviceTimes times(profile);
  std::vector<int64_t> ends_ns(zones, 0);
  for (uint64_t at = 0; at < kStreamBytes; at += kPiece) {
    const int64_t now_ns = *std::min_element(ends_ns.begin(), ends_ns.end());
    for (uint32_t zone = 0; zone < zones; ++zone) {
      const int64_t begin_ns = std::max(now_ns, ends_ns[zone]);
      ends_ns[zone] = kind == TimingOpKind::kRead ? times.Read(begin_ns, ZoneId(zone), kPiece)
                                                  : times.Write(begin_ns, ZoneId(zone), kPiece);
    }
  }
  return static_cast<double>(*std::max_element(ends_ns.begin(), ends_ns.end())) / kSecondNs;
}

struct StreamCase {
  std::string profile;
  TimingOpKind kind;
  uint32_t zones;
};

class DeviceTimesStreamTest : public testing::TestWithParam<StreamCase> {};

TEST_P(DeviceTimesStreamTest, AStreamTakesAsLongAsInTheModelOfTheFlash) {
  const auto& [name, kind, zones] = GetParam();
  const Profile profile = ProfileNamed(name);
  EXPECT_THAT(CoarseSeconds(profile, kind, zones), WithinPercent(3, ModelledSeconds(profile, kind, zones)));
}

INSTANTIATE_TEST_SUITE_P(
    Streams, DeviceTimesStreamTest,
    testing::Values(
        StreamCase{"small-zone", TimingOpKind::kWrite, 1}, StreamCase{"small-zone", TimingOpKind::kWrite, 16},
        StreamCase{"small-zone", TimingOpKind::kWrite, 32}, StreamCase{"small-zone", TimingOpKind::kWrite, 64},
        StreamCase{"small-zone", TimingOpKind::kRead, 1}, StreamCase{"small-zone", TimingOpKind::kRead, 32},
        StreamCase{"small-zone-96", TimingOpKind::kWrite, 8}, StreamCase{"ll-paper", TimingOpKind::kWrite, 1},
        StreamCase{"ll-paper", TimingOpKind::kWrite, 4}, StreamCase{"ll-paper", TimingOpKind::kRead, 4},
        StreamCase{"large-zone", TimingOpKind::kWrite, 1}, StreamCase{"large-zone", TimingOpKind::kWrite, 8},
        StreamCase{"large-zone", TimingOpKind::kRead, 4}),
    [](const auto& info) {
      std::string name = info.param.profile + (info.param.kind == TimingOpKind::kRead ? "Read" : "Write") +
                         std::to_string(info.param.zones);
      std::erase(name, '-');
      return name;
    });

TEST(DeviceTimesTest, WithoutTimingEverythingEndsAtOnce) {
  DeviceTimes times(ProfileNamed("lifetime-paper"));
  EXPECT_EQ(5, times.Write(5, ZoneId(1), kMiB));
  EXPECT_EQ(5, times.Read(5, ZoneId(1), kMiB));
  EXPECT_EQ(5, times.Reset(5, ZoneId(1), kMiB));
  EXPECT_EQ(5, times.Finish(5, ZoneId(1), kMiB));
  EXPECT_EQ(kMiB, times.media_bytes_written());
  EXPECT_EQ(1U, times.Groups()->count());
}

TEST(DeviceTimesTest, ZonesOfOneDieAreAGroup) {
  const Profile profile = ProfileNamed("small-zone");
  const auto groups = DeviceTimes(profile).Groups();
  EXPECT_EQ(profile.dies, groups->count());
  EXPECT_EQ(groups->of(ZoneId(3)), groups->of(ZoneId(35)));
  EXPECT_NE(groups->of(ZoneId(3)), groups->of(ZoneId(4)));
}

TEST(DeviceTimesTest, AWriterOfTheSameDieIsInTheWayAndAnotherIsNot) {
  const Profile profile = ProfileNamed("small-zone");
  DeviceTimes alone(profile);
  const int64_t alone_ns = alone.Write(0, ZoneId(0), kPiece);
  DeviceTimes times(profile);
  times.Write(0, ZoneId(32), kPiece);
  EXPECT_GT(times.Write(0, ZoneId(0), kPiece), alone_ns * 19 / 10);
  EXPECT_LT(times.Write(0, ZoneId(1), kPiece), alone_ns * 11 / 10);
}

TEST(DeviceTimesTest, AFinishPadsTheUnitThatIsNotFull) {
  const Profile profile = ProfileNamed("small-zone");
  DeviceTimes times(profile);
  times.Write(0, ZoneId(0), kMiB);
  times.Finish(kSecondNs, ZoneId(0), kMiB);
  EXPECT_EQ(RoundUp(kMiB, profile.program_unit), times.media_bytes_written());
}

}  // namespace
}  // namespace isozone
