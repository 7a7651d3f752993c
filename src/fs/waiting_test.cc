// What decides how long writers wait for zones: rounds of the collector, and the price of a zone.
#include <gtest/gtest.h>

#include "fs/collector_rounds.h"
#include "fs/flush_throttle.h"

namespace isozone {
namespace {

TEST(CollectorRounds, OnlyAWholeRoundIsHopeless) {
  CollectorRounds rounds;
  rounds.Attach(true);
  CollectorRounds::Since before;
  EXPECT_TRUE(rounds.MayHelp(before));
  rounds.Begin();
  CollectorRounds::Since within;
  EXPECT_TRUE(rounds.MayHelp(within));
  rounds.End(/*gained=*/false);
  EXPECT_FALSE(rounds.MayHelp(before));
  EXPECT_TRUE(rounds.MayHelp(within));
  rounds.Begin();
  rounds.End(/*gained=*/true);
  EXPECT_TRUE(rounds.MayHelp(within));
  rounds.Begin();
  rounds.End(/*gained=*/false);
  EXPECT_FALSE(rounds.MayHelp(within));
  CollectorRounds::Since afterwards;
  EXPECT_TRUE(rounds.MayHelp(afterwards));
}

TEST(CollectorRounds, HelpIsAttached) {
  CollectorRounds rounds;
  CollectorRounds::Since since;
  EXPECT_FALSE(rounds.MayHelp(since));
  rounds.Attach(true);
  EXPECT_TRUE(rounds.MayHelp(since));
  rounds.Attach(false);
  EXPECT_FALSE(rounds.MayHelp(since));
}

TEST(CollectorRounds, SpaceIsWantedWhileSomebodyWaits) {
  CollectorRounds rounds;
  EXPECT_FALSE(rounds.wanted());
  {
    const CollectorRounds::Waiting one(rounds);
    const CollectorRounds::Waiting two(rounds);
    EXPECT_TRUE(rounds.wanted());
  }
  EXPECT_FALSE(rounds.wanted());
}

TEST(FlushThrottle, ZonesCostNothingWhileThereIsSpace) {
  FlushThrottle throttle;
  EXPECT_TRUE(throttle.Pay(0));  // it is off
  throttle.SetBelow(20);
  EXPECT_TRUE(throttle.Pay(20));
  EXPECT_FALSE(throttle.Pay(19));
}

TEST(FlushThrottle, TheLessIsFreeTheMoreZonesHaveToBecomeFree) {
  for (const auto& [free_percent, zones] : {std::pair{15, 2}, {10, 4}, {5, 6}, {0, 8}}) {
    FlushThrottle throttle;
    throttle.SetBelow(20);
    for (int i = 1; i < zones; ++i) throttle.Earn();
    EXPECT_FALSE(throttle.Pay(free_percent)) << free_percent;
    throttle.Earn();
    EXPECT_TRUE(throttle.Pay(free_percent)) << free_percent;
    EXPECT_FALSE(throttle.Pay(free_percent)) << free_percent;
  }
}

TEST(FlushThrottle, SavesNoMoreThanTheDearestZoneCosts) {
  FlushThrottle throttle;
  throttle.SetBelow(20);
  for (int i = 0; i < 100; ++i) throttle.Earn();
  EXPECT_TRUE(throttle.Pay(0));
  EXPECT_FALSE(throttle.Pay(19));
  throttle.Forgive();
  EXPECT_TRUE(throttle.Pay(0));
}

}  // namespace
}  // namespace isozone
