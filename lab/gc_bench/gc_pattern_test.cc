#include "gc_bench/gc_pattern.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint32_t> Draw(UpdatePattern& pattern, int count) {
  std::vector<uint32_t> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(pattern.Next());
  return blocks;
}

TEST(GcPattern, UniformDrawsEveryBlockAboutAsOften) {
  std::vector<int> hits(10, 0);
  for (const uint32_t block : Draw(*UniformPattern(10, {1, 1}), 10'000)) ++hits.at(block);
  EXPECT_THAT(hits, ::testing::Each(::testing::AllOf(::testing::Gt(850), ::testing::Lt(1150))));
}

TEST(GcPattern, SameSeedSameBlocks) {
  EXPECT_EQ(Draw(*UniformPattern(1000, {5, 1}), 50), Draw(*UniformPattern(1000, {5, 1}), 50));
  EXPECT_NE(Draw(*UniformPattern(1000, {5, 1}), 50), Draw(*UniformPattern(1000, {6, 1}), 50));
  EXPECT_EQ(Draw(*SkewedPattern(1000, {5, 1}, {}), 50), Draw(*SkewedPattern(1000, {5, 1}, {}), 50));
}

TEST(GcPattern, RunsFollowEachOtherAndWrap) {
  const std::vector<uint32_t> blocks = Draw(*UniformPattern(7, {3, 4}), 400);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 4 == 0) continue;
    EXPECT_EQ(blocks[i], (blocks[i - 1] + 1) % 7);
  }
}

TEST(GcPattern, SkewedGivesTheHotDataItsShare) {
  const auto pattern = SkewedPattern(1000, {1, 1}, {0.7, 0.3, 10});
  std::vector<int> hits(100, 0);  // by stretch
  for (const uint32_t block : Draw(*pattern, 100'000)) ++hits.at(block / 10);
  int hot = 0;
  int hot_hits = 0;
  for (const int one : hits) {
    if (one < 1000) continue;  // 70,000 over 30 stretches, 30,000 over 70
    ++hot;
    hot_hits += one;
  }
  EXPECT_EQ(hot, 30);
  EXPECT_NEAR(hot_hits, 70'000, 700);
}

TEST(GcPattern, SkewedWithNothingHotOrNothingColdTakesWhatThereIs) {
  for (const double hot_data : {0.0, 1.0}) {
    for (const uint32_t block : Draw(*SkewedPattern(95, {1, 1}, {0.5, hot_data, 10}), 1000)) EXPECT_LT(block, 95U);
  }
}

TEST(GcPattern, TraceIsFollowedAndBeginsAgain) {
  auto trace = TracePattern("# updates\n3\n  7 # once\n\n5-8\r\n9 - 9", "t", 10);
  ASSERT_TRUE(trace.ok()) << trace.status().ToString();
  EXPECT_THAT(Draw(**trace, 9), ElementsAre(3, 7, 5, 6, 7, 8, 9, 3, 7));
}

TEST(GcPattern, BadLinesAreNamed) {
  struct Case {
    std::string text;
    std::string line;
    std::string what;
  };
  for (const Case& one : std::vector<Case>{{"1\n2\nthree\n", "t:3:", "'three'"},
                                           {"1\n\n-4\n", "t:3:", "'-4'"},
                                           {"5-\n", "t:1:", "'5-'"},
                                           {"8-5", "t:1:", "ends before"},
                                           {"4\n10", "t:2:", "block 10 is beyond the last one, 9"},
                                           {"99999999999999999999", "t:1:", "neither"},
                                           {"# nothing\n", "t ", "names no block"}}) {
    const auto trace = TracePattern(one.text, "t", 10);
    ASSERT_FALSE(trace.ok()) << one.text;
    EXPECT_TRUE(trace.status().Is(StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(trace.status().message()), ::testing::AllOf(HasSubstr(one.line), HasSubstr(one.what)));
  }
}

TEST(GcPattern, MissingTraceFileIsNamed) {
  const auto trace = TraceFilePattern("/nonexistent/trace", 10);
  ASSERT_FALSE(trace.ok());
  EXPECT_TRUE(trace.status().Is(StatusCode::kNotFound));
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("/nonexistent/trace"));
}

}  // namespace
}  // namespace isozone::cli
