#include "store/zone/allocator/collector_rounds.h"

#include <gtest/gtest.h>

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
  rounds.BeginWait();
  rounds.BeginWait();
  rounds.EndWait();
  EXPECT_TRUE(rounds.wanted());
  rounds.EndWait();
  EXPECT_FALSE(rounds.wanted());
}

}  // namespace
}  // namespace isozone
