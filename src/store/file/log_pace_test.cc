#include "store/file/log_pace.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "device/emulated/nand/timing_model.h"

namespace isozone {
namespace {

constexpr uint64_t kUnit = 192 * kKiB;
constexpr uint64_t kBandwidth = 96 * kMiB;
constexpr int64_t kProgramNs = 1'953'125;

TEST(LogPace, AZoneHasRoomWhileOneUnitIsProgrammed) {
  const LogPace pace(kUnit, kBandwidth);
  LogPace::Zone zone;
  int64_t now_ns = kSecondNs;
  EXPECT_FALSE(pace.OnWrite(zone, kUnit - 4096, now_ns));
  EXPECT_TRUE(pace.OnWrite(zone, 4096, now_ns));
  EXPECT_EQ(pace.BacklogNs(zone, now_ns), kProgramNs);
  EXPECT_TRUE(pace.HasRoom(zone, now_ns));
  EXPECT_TRUE(pace.OnWrite(zone, kUnit, now_ns));
  EXPECT_FALSE(pace.HasRoom(zone, now_ns));
  EXPECT_FALSE(pace.HasRoom(zone, now_ns + kProgramNs - 1));
  EXPECT_TRUE(pace.HasRoom(zone, now_ns + kProgramNs));
}

TEST(LogPace, ASlowLogNeverOutrunsItsZone) {
  const LogPace pace(kUnit, kBandwidth);
  LogPace::Zone zone;
  int64_t now_ns = kSecondNs;
  for (int i = 0; i < 1000; ++i) {
    now_ns += kProgramNs / 40;  // 48 writes fill a unit
    pace.OnWrite(zone, 4096, now_ns);
    EXPECT_TRUE(pace.HasRoom(zone, now_ns));
  }
}

// Writes a log to a device of a known profile, in virtual time. Returns how long each write takes, in rising order, and
// in `zones_used` how many zones the log has taken of the `zones_max` that it can have. Each zone is on a die of its
// own. `think_ns` passes between two writes.
std::vector<int64_t> LatenciesOfLog(size_t zones_max, int64_t think_ns, size_t& zones_used) {
  Profile profile = LoadProfile("small-zone").value();
  profile.zone_count = 32;
  TimingModel model(profile);
  const LogPace pace(kUnit, kBandwidth);
  struct Log {
    LogPace::Zone pace;
    uint64_t written = 0;
  };
  std::vector<Log> zones(1);
  size_t zone = 0;
  int64_t now_ns = kSecondNs;
  std::vector<int64_t> latencies;
  for (int i = 0; i < 15'000; ++i) {
    Log& log = zones[zone];
    model.Submit(now_ns, {TimingOpKind::kWrite, static_cast<uint32_t>(zone), log.written, 4096, 0}, 0);
    std::vector<TimingCompletion> completed;
    while (completed.empty()) model.AdvanceTo(model.NextCompletionBound(), completed);
    latencies.push_back(completed.front().time_ns - now_ns);
    log.written += 4096;
    now_ns = completed.front().time_ns + think_ns;
    if (!pace.OnWrite(log.pace, 4096, now_ns) || pace.HasRoom(log.pace, now_ns)) continue;
    const auto least =
        std::ranges::min_element(zones, {}, [&](const Log& other) { return pace.BacklogNs(other.pace, now_ns); });
    zone = static_cast<size_t>(least - zones.begin());
    if (pace.HasRoom(least->pace, now_ns) || zones.size() == zones_max) continue;
    zone = zones.size();
    zones.emplace_back();
  }
  zones_used = zones.size();
  std::ranges::sort(latencies);
  return latencies;
}

TEST(LogPace, ALogThatOutrunsOneZoneWaitsForProgramsThereAndNotInSeveral) {
  for (const int64_t think_ns : {1'000, 5'000, 10'000}) {
    SCOPED_TRACE(think_ns);
    size_t zones = 0;
    const auto at = [](const std::vector<int64_t>& sorted, double share) {
      return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
    };
    const std::vector<int64_t> alone = LatenciesOfLog(1, think_ns, zones);
    EXPECT_GT(at(alone, 0.99), 10 * at(alone, 0.5));
    const std::vector<int64_t> spread = LatenciesOfLog(8, think_ns, zones);
    EXPECT_LE(at(spread, 0.99), 2 * at(spread, 0.5));
    EXPECT_LE(at(spread, 0.999), 2 * at(spread, 0.5));
    EXPECT_GT(zones, 1u);
    EXPECT_LE(zones, 5u) << "more than its speed asks for";
  }
}

TEST(LogPace, ALogThatOneZoneKeepsUpWithStaysThere) {
  size_t zones = 0;
  LatenciesOfLog(8, 50'000, zones);
  EXPECT_EQ(zones, 1u);
}

}  // namespace
}  // namespace isozone
