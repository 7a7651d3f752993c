#include "device/emulated/durable_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kBlock = 512;

class DurableRanges : public testing::Test {
 protected:
  DurableRanges() { StoreContent(entry_, {ZoneState::kClosed, 100 * kBlock}); }
  void Prefix(uint64_t end) { MakePrefixDurable(entry_, kBlock, end * kBlock); }
  void Range(uint64_t begin, uint64_t end) { MakeRangeDurable(entry_, kBlock, {begin * kBlock, end * kBlock}); }
  // The durable prefix, in blocks.
  uint64_t prefix() const { return entry_.durable / kBlock; }
  std::vector<ZoneRange> Beyond() const {
    std::vector<ZoneRange> ranges = DurableBeyond(entry_, kBlock);
    for (ZoneRange& range : ranges) range = {range.begin / kBlock, range.end / kBlock};
    return ranges;
  }
  static ZoneRange R(uint64_t begin, uint64_t end) { return {begin, end}; }

  ZoneEntry entry_{};
};

TEST_F(DurableRanges, ARangeAtThePrefixMakesThatLonger) {
  Range(0, 3);
  Range(3, 5);
  EXPECT_EQ(prefix(), 5u);
  EXPECT_THAT(Beyond(), IsEmpty());
}

TEST_F(DurableRanges, ARangeBehindAGapStaysByItself) {
  Prefix(2);
  Range(10, 12);
  Range(12, 15);  // extends the range before it
  Range(4, 6);
  EXPECT_EQ(prefix(), 2u);
  EXPECT_THAT(Beyond(), ElementsAre(R(4, 6), R(10, 15)));
}

TEST_F(DurableRanges, APrefixThatReachesARangeTakesItIn) {
  Range(4, 6);
  Range(10, 12);
  Prefix(4);
  EXPECT_EQ(prefix(), 6u);
  EXPECT_THAT(Beyond(), ElementsAre(R(10, 12)));
  Prefix(50);
  EXPECT_EQ(prefix(), 50u);
  EXPECT_THAT(Beyond(), IsEmpty());
  Prefix(20);
  EXPECT_EQ(prefix(), 50u);
}

TEST_F(DurableRanges, WithMoreRangesThanAnEntryHoldsTheFirstGapBecomesDurable) {
  for (uint64_t at = 10; at <= 50; at += 10) Range(at, at + 1);
  EXPECT_EQ(prefix(), 11u);
  EXPECT_THAT(Beyond(), ElementsAre(R(20, 21), R(30, 31), R(40, 41), R(50, 51)));
}

TEST_F(DurableRanges, AZoneThatIsResetHasNone) {
  Range(4, 6);
  ResetDurable(entry_, 0);
  EXPECT_EQ(prefix(), 0u);
  EXPECT_THAT(Beyond(), IsEmpty());
}

TEST_F(DurableRanges, RangesOfAResetThatWasKilledHalfWayAreNone) {
  Range(4, 6);
  StoreContent(entry_, {ZoneState::kEmpty, 0});
  EXPECT_THAT(Beyond(), IsEmpty());
}

TEST_F(DurableRanges, NothingDurableIsEverForgotten) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    ResetDurable(entry_, 0);
    std::vector<bool> durable(100);
    for (uint64_t at = 0; at + 5 < durable.size();) {
      const uint64_t end = at + random.Between(1, 5);
      if (random.Chance(0.4)) {
        Range(at, end);
        std::fill(durable.begin() + static_cast<ptrdiff_t>(at), durable.begin() + static_cast<ptrdiff_t>(end), true);
      } else if (random.Chance(0.05)) {
        Prefix(end);
        std::fill(durable.begin(), durable.begin() + static_cast<ptrdiff_t>(end), true);
      }
      at = end;
    }
    for (uint64_t block = 0; block < durable.size(); ++block) {
      bool found = block < prefix();
      for (const ZoneRange& range : Beyond()) found |= range.begin <= block && block < range.end;
      EXPECT_TRUE(found || !durable[block]) << "block " << block << " in round " << round;
    }
  }
}

}  // namespace
}  // namespace isozone
