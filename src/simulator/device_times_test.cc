// Streams of one kind, held against the model of the flash itself.
#include "simulator/device_times.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "device/emulated/nand/timing_model.h"

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
  EXPECT_EQ(kMiB, times.media().written);
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

// The mean time of a read of one unit from a zone, one after another, while another zone of its die is written.
double ModelledReadBesideWriterNs(const Profile& profile, int reads) {
  constexpr uint64_t kWrite = 1;
  constexpr uint64_t kRead = 2;
  TimingModel model(profile);
  uint64_t written = 0;
  uint64_t read = 0;
  int64_t read_since_ns = 0;
  double read_ns = 0;
  const auto submit = [&](int64_t now_ns, uint64_t ticket) {
    const TimingOpKind kind = ticket == kRead ? TimingOpKind::kRead : TimingOpKind::kWrite;
    uint64_t& next = ticket == kRead ? read : written;
    model.Submit(now_ns, {.kind = kind, .zone = ticket == kRead ? 0 : profile.dies, .offset = next, .length = kCommand},
                 ticket);
    next += kCommand;
    if (ticket == kRead) read_since_ns = now_ns;
  };
  for (int i = 0; i < 4; ++i) submit(0, kWrite);
  submit(0, kRead);
  std::vector<TimingCompletion> completed;
  for (int done = 0; done < reads;) {
    const int64_t now_ns = model.NextCompletionBound();
    completed.clear();
    model.AdvanceTo(now_ns, completed);
    for (const TimingCompletion& one : completed) {
      if (one.ticket == kRead) {
        read_ns += static_cast<double>(one.time_ns - read_since_ns);
        ++done;
      }
      submit(now_ns, one.ticket);
    }
  }
  return read_ns / reads;
}

// However long the pieces are that the writer writes.
TEST(DeviceTimesTest, AReadWaitsForTheWriteBufferAlone) {
  const Profile profile = ProfileNamed("small-zone");
  constexpr int kReads = 64;
  const double modelled_ns = ModelledReadBesideWriterNs(profile, kReads);
  for (const uint64_t piece : {2 * kCommand, kPiece}) {
    DeviceTimes times(profile);
    int64_t now_ns = 0;
    int64_t written_ns = 0;
    for (int i = 0; i < kReads; ++i) {
      while (written_ns <= now_ns) written_ns = times.Write(written_ns, ZoneId(profile.dies), piece);
      now_ns = times.Read(now_ns, ZoneId(0), kCommand);
    }
    EXPECT_THAT(static_cast<double>(now_ns) / kReads, WithinPercent(15, modelled_ns)) << piece;
  }
}

TEST(DeviceTimesTest, AFinishPadsTheUnitThatIsNotFull) {
  Profile profile = ProfileNamed("small-zone");
  profile.finish_padding = 0;
  DeviceTimes times(profile);
  times.Write(0, ZoneId(0), kMiB);
  times.Finish(kSecondNs, ZoneId(0), kMiB);
  EXPECT_EQ(RoundUp(kMiB, profile.program_unit), times.media().written);
  EXPECT_EQ(RoundUp(kMiB, profile.program_unit) - kMiB, times.media().dummy);
}

// What a finish takes is as much as the model of the flash says, to within a unit.
TEST(DeviceTimesTest, AFinishPadsTheZoneAndKeepsItsDieFromOthers) {
  for (const char* name : {"small-zone", "large-zone", "zgc-paper"}) {
    const Profile profile = ProfileNamed(name);
    DeviceTimes times(profile);
    TimingModel model(profile);
    model.Submit(0, {TimingOpKind::kFinish, 0, 0, 0, kMiB}, 0);
    std::vector<TimingCompletion> completed;
    model.AdvanceTo(10 * kSecondNs, completed);
    ASSERT_EQ(completed.size(), 1U);
    const int64_t finished = times.Finish(0, ZoneId(0), kMiB);
    EXPECT_NEAR(static_cast<double>(finished), static_cast<double>(completed[0].time_ns),
                0.05 * static_cast<double>(finished))
        << name;
    EXPECT_EQ(times.media().dummy, profile.zone_capacity - kMiB);
  }
  const Profile profile = ProfileNamed("small-zone");
  DeviceTimes times(profile);
  const int64_t finished = times.Finish(0, ZoneId(0), kMiB);
  EXPECT_GT(times.Write(0, ZoneId(32), kMiB), finished - 10 * profile.program_ns);
  EXPECT_LT(times.Write(0, ZoneId(1), kMiB), finished / 10);
}

TEST(DeviceTimesTest, AResetPadsIfTheDeviceDoes) {
  Profile profile = ProfileNamed("small-zone");
  DeviceTimes unpadded(profile);
  EXPECT_EQ(unpadded.Reset(0, ZoneId(0), kMiB), profile.management_latency_ns + profile.erase_ns);
  EXPECT_EQ(unpadded.media().dummy, 0U);
  profile.reset_padding = profile.zone_capacity;
  DeviceTimes padded(profile);
  EXPECT_GT(padded.Reset(0, ZoneId(0), kMiB), 300 * profile.program_ns);
  EXPECT_EQ(padded.media().dummy, profile.zone_capacity - kMiB);
  EXPECT_EQ(padded.Reset(0, ZoneId(1), profile.zone_capacity), profile.management_latency_ns + profile.erase_ns);
}

}  // namespace
}  // namespace isozone
