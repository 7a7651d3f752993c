// What is drawn, held against the theory. The seeds are fixed: each bound is many standard deviations wide and the draw
// is always the same, so a failure is a fault.
#include "base/key_distributions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kDraws = 2'000'000;
constexpr uint64_t kItems = 10'000;
constexpr uint64_t kSeed = 20261122;

std::vector<uint64_t> Draw(uint64_t items, const std::function<uint64_t(Random&)>& next) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::vector<uint64_t> counts(items);
  Random random(kSeed);
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint64_t item = next(random);
    if (item >= items) {
      ADD_FAILURE() << "item " << item << " of " << items;
      break;
    }
    ++counts[item];
  }
  return counts;
}

double Zeta(uint64_t items) {
  double sum = 0;
  for (uint64_t rank = 1; rank <= items; ++rank) sum += 1 / std::pow(rank, kZipfianConstant);
  return sum;
}

// Of the item of popularity `rank`, from 0.
double InTheory(uint64_t rank, uint64_t items) { return 1 / std::pow(rank + 1, kZipfianConstant) / Zeta(items); }

double ShareOfFirst(const std::vector<uint64_t>& counts, size_t items) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(items), 0UL)) /
         kDraws;
}

double ChiSquare(const std::vector<uint64_t>& counts, double expected) {
  double sum = 0;
  for (const uint64_t count : counts) sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  return sum;
}

TEST(FnvHash, IsThatOfYcsb) {
  // Utils.fnvhash64 of 0, 1 and 2: the keys of YCSB's first records.
  EXPECT_EQ(FnvHash64(0), 6284781860667377211u);
  EXPECT_EQ(FnvHash64(1), 8517097267634966620u);
  EXPECT_EQ(FnvHash64(2), 1820151046732198393u);
}

TEST(Uniform, FillsItsRangeEvenly) {
  const Uniform uniform(1, 100);
  const auto counts = Draw(101, [&](Random& random) { return uniform.Next(random); });
  EXPECT_EQ(counts[0], 0u);
  const std::vector<uint64_t> range(counts.begin() + 1, counts.end());
  EXPECT_LT(ChiSquare(range, kDraws / 100.0), 160);  // 99 degrees of freedom: 1 in 10,000 is above
}

TEST(Zipfian, ZetaIsTheSumOverRanks) {
  EXPECT_DOUBLE_EQ(Zipfian(1).zeta(), 1);
  EXPECT_NEAR(Zipfian(kItems).zeta(), Zeta(kItems), 1e-9);
}

TEST(Zipfian, TheTwoMostPopularAreExact) {
  const Zipfian zipfian(kItems);
  const auto counts = Draw(kItems, [&](Random& random) { return zipfian.Next(random); });
  for (const uint64_t rank : {0, 1}) {
    const double share = InTheory(rank, kItems);
    const double sigma = std::sqrt(kDraws * share * (1 - share));
    EXPECT_NEAR(static_cast<double>(counts[rank]), kDraws * share, 4 * sigma) << "rank " << rank;
  }
}

TEST(Zipfian, TheOthersAreAsCloseAsTheAlgorithmIs) {
  const Zipfian zipfian(kItems);
  const auto counts = Draw(kItems, [&](Random& random) { return zipfian.Next(random); });
  for (uint64_t rank = 2; rank < 50; ++rank) {
    const double found = static_cast<double>(counts[rank]) / kDraws / InTheory(rank, kItems) - 1;
    EXPECT_LT(std::abs(found), rank < 9 ? 0.20 : 0.06) << "rank " << rank;
  }
  double theory = 0;
  for (uint64_t rank = 0; rank < kItems; ++rank) {
    theory += InTheory(rank, kItems);
    if (rank + 1 == 100 || rank + 1 == 1000) {
      EXPECT_NEAR(ShareOfFirst(counts, rank + 1), theory, 0.03 * theory) << "the first " << rank + 1;
    }
  }
}

// Chi-square over blocks of ranks against the power function of the algorithm, solved for the random number.
TEST(Zipfian, FollowsTheDistributionOfGrayEtAl) {
  const double zeta = Zeta(kItems);
  const double eta = (1 - std::pow(2.0 / kItems, 1 - kZipfianConstant)) / (1 - Zeta(2) / zeta);
  const auto below = [&](double rank) {  // the probability of all ranks below it
    return (std::pow(rank / kItems, 1 - kZipfianConstant) - 1 + eta) / eta;
  };
  const Zipfian zipfian(kItems);
  const auto counts = Draw(kItems, [&](Random& random) { return zipfian.Next(random); });
  double chi_square = 0;
  int blocks = 0;
  for (uint64_t first = 2; first < kItems; ++blocks) {
    const uint64_t last = std::min(kItems, first + std::max<uint64_t>(1, first / 10));
    const double expected = kDraws * (below(static_cast<double>(last)) - below(static_cast<double>(first)));
    chi_square +=
        std::pow(ShareOfFirst(counts, last) * kDraws - ShareOfFirst(counts, first) * kDraws - expected, 2) / expected;
    first = last;
  }
  EXPECT_GT(blocks, 50);
  EXPECT_LT(chi_square, blocks + 4 * std::sqrt(2.0 * blocks));
}

TEST(Zipfian, GrownIsTheSameAsMadeLarge) {
  Zipfian grown(100);
  grown.GrowTo(101);
  grown.GrowTo(kItems);
  const Zipfian large(kItems);
  EXPECT_EQ(grown.items(), large.items());
  EXPECT_EQ(grown.zeta(), large.zeta());
  Random one(kSeed);
  Random other(kSeed);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(grown.Next(one), large.Next(other));
}

TEST(Zipfian, FewItemsAreAllReached) {
  for (const uint64_t items : {1, 2, 3, 4}) {
    const Zipfian zipfian(items);
    const auto counts = Draw(items, [&](Random& random) { return zipfian.Next(random); });
    EXPECT_TRUE(std::ranges::is_sorted(counts, std::greater<>())) << items << " items";
    EXPECT_GT(counts.back(), kDraws / 10) << items << " items";
  }
}

TEST(ScrambledZipfian, TheMostPopularItemsAreAsPopularAsRanksAmongTenBillion) {
  const ScrambledZipfian scrambled(kItems);
  const auto counts = Draw(kItems, [&](Random& random) { return scrambled.Next(random); });
  for (const uint64_t rank : {0, 1}) {
    const double share = 1 / std::pow(rank + 1, kZipfianConstant) / ScrambledZipfian::kZeta;
    const double found = static_cast<double>(counts[FnvHash64(rank) % kItems]) / kDraws;
    EXPECT_NEAR(found, share + 0.9 / kItems, 0.001) << "rank " << rank;  // less popular ranks share every item
  }
  EXPECT_EQ(std::ranges::max_element(counts) - counts.begin(), static_cast<ptrdiff_t>(FnvHash64(0) % kItems));
}

TEST(ScrambledZipfian, ReachesTheWholeItemSpace) {
  const ScrambledZipfian scrambled(kItems);
  const auto counts = Draw(kItems, [&](Random& random) { return scrambled.Next(random); });
  EXPECT_EQ(std::ranges::count(counts, 0u), 0);
  for (size_t tenth = 1; tenth <= 10; ++tenth) {
    const double share = ShareOfFirst(counts, tenth * kItems / 10) - ShareOfFirst(counts, (tenth - 1) * kItems / 10);
    EXPECT_GT(share, 0.06) << "tenth " << tenth;
    EXPECT_LT(share, 0.15) << "tenth " << tenth;
  }
}

TEST(Latest, TheNewestItemIsTheMostPopular) {
  Latest latest(kItems);
  auto counts = Draw(kItems, [&](Random& random) { return latest.Next(random, kItems); });
  std::ranges::reverse(counts);
  for (const uint64_t age : {0, 1}) {
    EXPECT_NEAR(static_cast<double>(counts[age]) / kDraws, InTheory(age, kItems), 0.001) << "age " << age;
  }
  EXPECT_GT(ShareOfFirst(counts, kItems / 10), 0.7);
}

TEST(Latest, FollowsWhatIsInserted) {
  Latest latest(10);
  Random random(kSeed);
  uint64_t newest = 0;
  for (uint64_t items = 10; items < 10 + kItems; ++items) {
    const uint64_t item = latest.Next(random, items);
    ASSERT_LT(item, items);
    if (item == items - 1) ++newest;
  }
  EXPECT_GT(newest, kItems * InTheory(0, 2 * kItems));
}

TEST(Distributions, TheSameSeedGivesTheSameSequence) {
  const Zipfian zipfian(kItems);
  const ScrambledZipfian scrambled(kItems);
  Latest latest(kItems);
  const auto sequence = [&](uint64_t seed) {
    Random random(seed);
    std::vector<uint64_t> items;
    for (int i = 0; i < 1000; ++i) {
      items.push_back(zipfian.Next(random));
      items.push_back(scrambled.Next(random));
      items.push_back(latest.Next(random, kItems));
    }
    return items;
  };
  EXPECT_EQ(sequence(kSeed), sequence(kSeed));
  EXPECT_NE(sequence(kSeed), sequence(kSeed + 1));
}

}  // namespace
}  // namespace isozone
