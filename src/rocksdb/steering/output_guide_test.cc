#include "rocksdb/steering/output_guide.h"

#include <atomic>

#include <gtest/gtest.h>

#include "rocksdb/adapter/running_job.h"

namespace isozone {
namespace {

constexpr uint64_t kTZone = 7;
constexpr uint64_t kTableBytes = 1000;

CompactionPick Pick() {
  CompactionPick pick;
  pick.smallest = "a";
  pick.largest = "z";
  pick.cut_keys = {"f"};
  pick.preferred_cut_keys = {"c", "m"};
  pick.preferred_cut_bytes = 500;
  pick.short_lived = {{"d", "f"}, {"p", std::nullopt}};
  return pick;
}

TEST(OutputGuideTest, CutsAtEachKeyOnce) {
  const CompactionPick pick = Pick();
  std::atomic<uint64_t> written_bytes = 0;
  OutputGuide guide(pick, BytewiseOrder(), kTZone, kTableBytes, written_bytes);
  EXPECT_FALSE(guide.CutsBefore("b", 900));
  EXPECT_FALSE(guide.CutsBefore("c", 499)) << "the output is too small";
  EXPECT_FALSE(guide.CutsBefore("d", 900)) << "the key has been passed";
  EXPECT_TRUE(guide.CutsBefore("g", 1));
  EXPECT_FALSE(guide.CutsBefore("h", 900));
  EXPECT_TRUE(guide.CutsBefore("n", 500));
}

TEST(OutputGuideTest, CountsWhatTheOutputsHave) {
  const CompactionPick pick = Pick();
  std::atomic<uint64_t> written_bytes = 0;
  OutputGuide guide(pick, BytewiseOrder(), kTZone, kTableBytes, written_bytes);
  (void)guide.CutsBefore("b", 300);
  EXPECT_EQ(written_bytes, 300U);
  (void)guide.CutsBefore("c", 900);
  EXPECT_EQ(written_bytes, 900U);
  (void)guide.CutsBefore("d", 10);  // another output has begun
  EXPECT_EQ(written_bytes, 910U);
}

TEST(OutputGuideTest, TellsTheThreadOfShortLivedTables) {
  const CompactionPick pick = Pick();
  std::atomic<uint64_t> written_bytes = 0;
  const RunningJob& job = RunningJob::OfThread();
  {
    OutputGuide guide(pick, BytewiseOrder(), kTZone, kTableBytes, written_bytes);
    EXPECT_EQ(job.guide, &guide);
    const auto cohort_at = [&](const char* key) {
      (void)guide.CutsBefore(key, 0);
      return job.cohort;
    };
    EXPECT_EQ(job.cohort, 0U);
    EXPECT_EQ(cohort_at("d"), kTZone);
    EXPECT_EQ(job.expected_bytes, kTableBytes / 2);
    EXPECT_EQ(cohort_at("f"), 0U);
    EXPECT_EQ(job.expected_bytes, 0U);
    EXPECT_EQ(cohort_at("q"), kTZone);
  }
  EXPECT_EQ(job.guide, nullptr);
  EXPECT_EQ(job.cohort, 0U);
  EXPECT_EQ(job.expected_bytes, 0U);
}

TEST(OutputGuideTest, WithoutATZoneAllTablesArePlacedAlike) {
  const CompactionPick pick = Pick();
  std::atomic<uint64_t> written_bytes = 0;
  OutputGuide guide(pick, BytewiseOrder(), 0, kTableBytes, written_bytes);
  (void)guide.CutsBefore("q", 0);
  EXPECT_EQ(RunningJob::OfThread().cohort, 0U);
  EXPECT_EQ(RunningJob::OfThread().expected_bytes, 0U);
}

}  // namespace
}  // namespace isozone
