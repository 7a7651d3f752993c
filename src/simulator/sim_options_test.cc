#include "simulator/sim_options.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::HasSubstr;

TEST(SimOptionsTest, APhaseIsAnOrderAndASize) {
  const auto plain = ParseSimPhase("zipfian");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(KeyOrderKind::kZipfian, plain->order);
  EXPECT_EQ(0U, plain->bytes);
  const auto sized = ParseSimPhase("shuffled:2G");
  ASSERT_TRUE(sized.ok());
  EXPECT_EQ(KeyOrderKind::kShuffled, sized->order);
  EXPECT_EQ(2 * kGiB, sized->bytes);
}

TEST(SimOptionsTest, PercentagesAreOfPutsAndOfKeys) {
  const auto phase = ParseSimPhase("90/12.5:1G");
  ASSERT_TRUE(phase.ok());
  EXPECT_EQ(KeyOrderKind::kSkewed, phase->order);
  EXPECT_EQ(90, phase->hot_percent);
  EXPECT_EQ(12.5, phase->hot_keys_percent);
}

TEST(SimOptionsTest, WhatIsNoPhaseIsAnsweredWithTheKnownOnes) {
  for (const std::string text :
       {"", "random", "0/30", "70/100", "70/", "a/b", "uniform:", "uniform:0", "uniform:big"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(ParseSimPhase(text).status().Is(StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(std::string(ParseSimPhase("random").status().message()), HasSubstr("shuffled"));
}

SimOptions GoodOptions() {
  SimOptions options;
  options.tree.limits = LsmLimits::Exponential(7, 256 * kMiB, 10);
  options.device.profile = *LoadProfile("small-zone");
  return options;
}

TEST(SimOptionsTest, EachOptionIsChecked) {
  EXPECT_TRUE(CheckSimOptions(GoodOptions()).ok());
  const std::vector<std::pair<std::string, void (*)(SimOptions&)>> cases = {
      {"whole blocks", [](SimOptions& o) { o.load.record_bytes = 1'000; }},
      {"no data", [](SimOptions& o) { o.load.data_bytes = 0; }},
      {"no phase", [](SimOptions& o) { o.load.phases.clear(); }},
      {"more than can be counted", [](SimOptions& o) { o.load.phases[0].bytes = uint64_t{1} << 62; }},
      {"has no records", [](SimOptions& o) { o.load.phases[0].order = KeyOrderKind::kListed; }},
      {"smaller than a record", [](SimOptions& o) { o.tree.memtable_bytes = 1; }},
      {"no memtable", [](SimOptions& o) { o.tree.memtables = 0; }},
      {"out of order", [](SimOptions& o) { o.tree.level0_stop = 1; }},
      {"nobody flushes", [](SimOptions& o) { o.tree.flush_workers = 0; }},
      {"a rate of 0", [](SimOptions& o) { o.rates.put = 0; }},
      {"stripe", [](SimOptions& o) { o.device.stripe_width = 0; }},
  };
  for (const auto& [what, change] : cases) {
    SCOPED_TRACE(what);
    SimOptions options = GoodOptions();
    change(options);
    EXPECT_THAT(std::string(CheckSimOptions(options).message()), HasSubstr(what));
  }
}

TEST(SimOptionsTest, ARecordOfAListMustBeThere) {
  SimOptions options = GoodOptions();
  options.load.phases = {{.order = KeyOrderKind::kListed}};
  options.load.phases[0].listed = {5, 16'384};
  EXPECT_THAT(std::string(CheckSimOptions(options).message()), HasSubstr("record 16384 of the list"));
}

}  // namespace
}  // namespace isozone
