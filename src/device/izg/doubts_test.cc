#include "device/izg/doubts.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace isozone {
namespace {

TEST(PoissonUpper, IsTheMeanThatRarelyShowsSoFew) {
  EXPECT_NEAR(PoissonUpper(0), -std::log(Doubts::kBoundFails), 1e-6);
  // The sum of the first terms is the definition.
  for (const double seen : {1.0, 7.0, 60.0, 900.0}) {
    double below = 0;
    const double mean = PoissonUpper(seen);
    for (double k = 0; k <= seen; ++k) below += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
    EXPECT_NEAR(below, Doubts::kBoundFails, 1e-6) << seen;
  }
  EXPECT_NEAR(PoissonUpper(1000) / PoissonUpper(999), 1.001, 0.001) << "the approximation continues the exact one";
}

TEST(Doubts, ReverseTheirMindWhenZonesAreRejected) {
  Doubts doubts;
  doubts.Calibrated(0.004);
  EXPECT_TRUE(doubts.Suffices(Doubts::Proposal::kGuess, 1));
  doubts.Reject(Doubts::Proposal::kGuess, 1, 100);
  EXPECT_FALSE(doubts.Suffices(Doubts::Proposal::kGuess, 1));
  EXPECT_TRUE(doubts.Suffices(Doubts::Proposal::kGuess, 2));
  EXPECT_FALSE(doubts.Suffices(Doubts::Proposal::kHalving, 1)) << "which does not tell the groups of a set apart";
  EXPECT_TRUE(doubts.Suffices(Doubts::Proposal::kHalving, 2)) << "of which none was rejected";
  EXPECT_EQ(doubts.any_wrong(), 0) << "as long as none has joined";
  doubts.Join(Doubts::Proposal::kGuess, 2);
  const double once = doubts.any_wrong();
  EXPECT_GT(once, 0);
  EXPECT_LT(once, Doubts::kMayBeWrong);
  doubts.JoinOtherwise(0.01);
  EXPECT_NEAR(doubts.any_wrong(), once + 0.01, 1e-9);
}

TEST(Doubts, NeverAskForMoreThanTheMostPasses) {
  Doubts doubts;  // everything passes
  EXPECT_FALSE(doubts.Suffices(Doubts::Proposal::kHalving, 1));
  EXPECT_TRUE(doubts.Suffices(Doubts::Proposal::kHalving, Doubts::kMostPasses));
  doubts.Join(Doubts::Proposal::kHalving, Doubts::kMostPasses);
  EXPECT_EQ(doubts.any_wrong(), 1);
}

// Draws what a device would show many times, and compares the bound with how often a wrong zone was left.
TEST(Doubts, BoundWhatReallyHappens) {
  constexpr int kRuns = 2000, kWrong = 20;
  constexpr double kPasses = 0.02;
  int runs_with_wrong = 0;
  double bounds = 0;
  Random random(1);
  for (int run = 0; run < kRuns; ++run) {
    Doubts doubts;
    doubts.Calibrated(kPasses);
    int wrong = kWrong;
    for (size_t pass = 1;; ++pass) {
      int kept = 0;
      for (int i = 0; i < wrong; ++i) kept += random.Chance(kPasses) ? 1 : 0;
      doubts.Reject(Doubts::Proposal::kHalving, pass, static_cast<uint64_t>(wrong - kept));
      wrong = kept;
      if (doubts.Suffices(Doubts::Proposal::kHalving, pass)) {
        doubts.Join(Doubts::Proposal::kHalving, pass);
        break;
      }
    }
    runs_with_wrong += wrong > 0 ? 1 : 0;
    bounds += doubts.any_wrong();
  }
  EXPECT_LE(runs_with_wrong, bounds);
  EXPECT_LT(bounds / kRuns, Doubts::kMayBeWrong + 0.01) << "and is worth something";
}

}  // namespace
}  // namespace isozone
