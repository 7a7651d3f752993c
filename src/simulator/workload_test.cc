#include "simulator/workload.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

SimLoad LoadOf(std::initializer_list<std::string_view> phases) {
  SimLoad load;
  load.data_bytes = 1'000 * load.record_bytes;
  load.phases.clear();
  for (const std::string_view text : phases) {
    auto phase = ParseSimPhase(text);
    EXPECT_TRUE(phase.ok()) << phase.status().ToString();
    load.phases.push_back(*phase);
  }
  return load;
}

std::vector<uint32_t> KeysOf(const SimLoad& load) {
  Workload workload(load);
  std::vector<uint32_t> keys;
  for (ModelRecord record; workload.Next(record);) keys.push_back(record.key);
  EXPECT_EQ(workload.total_records(), keys.size());
  EXPECT_EQ(workload.done_records(), keys.size());
  return keys;
}

TEST(WorkloadTest, SequentialKeysRise) {
  const auto keys = KeysOf(LoadOf({"sequential"}));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(1'000U, keys.size());
}

TEST(WorkloadTest, ShuffledKeysComeOnceEach) {
  const auto keys = KeysOf(LoadOf({"shuffled"}));
  EXPECT_FALSE(std::ranges::is_sorted(keys));
  EXPECT_EQ(1'000U, std::set<uint32_t>(keys.begin(), keys.end()).size());
}

TEST(WorkloadTest, SkewedPutsGoToTheHotKeys) {
  auto keys = KeysOf(LoadOf({"90/10:640M"}));  // ten for each key
  std::map<uint32_t, uint32_t> puts;
  for (const uint32_t key : keys) ++puts[key];
  std::vector<uint32_t> counts;
  for (const auto& [key, count] : puts) counts.push_back(count);
  std::ranges::sort(counts, std::greater());
  uint64_t hot = 0;
  for (size_t i = 0; i < 100; ++i) hot += counts[i];
  EXPECT_NEAR(0.9, static_cast<double>(hot) / static_cast<double>(keys.size()), 0.06);
}

TEST(WorkloadTest, ZipfianPutsHaveAFavourite) {
  const auto keys = KeysOf(LoadOf({"zipfian:640M"}));
  std::map<uint32_t, uint32_t> puts;
  for (const uint32_t key : keys) ++puts[key];
  uint32_t most = 0;
  for (const auto& [key, count] : puts) most = std::max(most, count);
  EXPECT_GT(most, 20 * keys.size() / 1'000);
}

TEST(WorkloadTest, AListIsPutAgainAndAgain) {
  SimLoad load = LoadOf({"list:320K"});
  load.phases[0].listed = {7, 9};
  EXPECT_EQ((std::vector<uint32_t>{7, 9, 7, 9, 7}), KeysOf(load));
}

TEST(WorkloadTest, PhasesFollowEachOther) {
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 0}), KeysOf(LoadOf({"sequential:128K", "sequential:64K"})));
}

TEST(WorkloadTest, LiveRecordsAreThoseThatWereNotDeleted) {
  SimLoad load = LoadOf({"sequential", "uniform:6400M"});
  load.delete_percent = 30;
  Workload workload(load);
  std::set<uint32_t> live;
  for (ModelRecord record; workload.Next(record);) {
    if (record.deletes) {
      live.erase(record.key);
    } else {
      live.insert(record.key);
    }
  }
  EXPECT_EQ(live.size(), workload.live_records());
  EXPECT_NEAR(700, static_cast<double>(live.size()), 60);
}

TEST(WorkloadTest, TheSeedDecides) {
  SimLoad load = LoadOf({"uniform"});
  const auto first = KeysOf(load);
  EXPECT_EQ(first, KeysOf(load));
  load.seed = 2;
  EXPECT_NE(first, KeysOf(load));
}

}  // namespace
}  // namespace isozone
