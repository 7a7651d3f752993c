#include "store/zone/allocator/active_budget.h"

#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

using Tokens = std::vector<ActiveBudget::Token>;

uint32_t TakeAll(ActiveBudget& budget, BudgetClass c, Tokens& tokens) {
  uint32_t taken = 0;
  while (auto token = budget.TryTake(c)) {
    tokens.push_back(std::move(*token));
    ++taken;
  }
  return taken;
}

TEST(ActiveBudget, DataNeverTakesAReserve) {
  ActiveBudget budget(14);
  Tokens tokens;
  EXPECT_EQ(TakeAll(budget, BudgetClass::kData, tokens), 7U);  // its own 2 and the rest of 5
  EXPECT_EQ(TakeAll(budget, BudgetClass::kGc, tokens), 1U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kLog, tokens), 2U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kMetadata, tokens), 4U);
  EXPECT_EQ(budget.used(), 14U);
}

TEST(ActiveBudget, EveryClassBorrowsFromTheRestOnly) {
  for (const BudgetClass c : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
    ActiveBudget budget(12);
    Tokens tokens;
    EXPECT_EQ(TakeAll(budget, c, tokens), ActiveBudget::ReserveOf(c) + 3);
    EXPECT_TRUE(budget.Borrows(c));
    for (const BudgetClass other : {BudgetClass::kMetadata, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kData}) {
      EXPECT_EQ(budget.Available(other), other == c ? 0 : ActiveBudget::ReserveOf(other));
    }
  }
}

TEST(ActiveBudget, SmallestDeviceGivesEveryClassItsReserve) {
  ActiveBudget budget(ActiveBudget::kReserveTotal);
  Tokens tokens;
  for (const BudgetClass c : {BudgetClass::kData, BudgetClass::kLog, BudgetClass::kGc, BudgetClass::kMetadata}) {
    EXPECT_EQ(TakeAll(budget, c, tokens), ActiveBudget::ReserveOf(c));
    EXPECT_FALSE(budget.Borrows(c));
  }
}

TEST(ActiveBudget, TokenGoesBackOnceHoweverItIsMoved) {
  ActiveBudget budget(9);
  {
    auto first = budget.TryTake(BudgetClass::kLog);
    ActiveBudget::Token moved = std::move(*first);
    first.reset();
    EXPECT_EQ(budget.used(BudgetClass::kLog), 1U);
    std::optional<ActiveBudget::Token> second = budget.TryTake(BudgetClass::kLog);
    moved = std::move(*second);
    second.reset();
    EXPECT_EQ(budget.used(BudgetClass::kLog), 1U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ActiveBudget, AdoptedTokensMayExceedTheBudgetAndAreThenOwed) {
  ActiveBudget budget(10);
  Tokens tokens;
  for (int i = 0; i < 5; ++i) tokens.push_back(budget.Adopt(BudgetClass::kData));
  EXPECT_EQ(budget.Overcommitted(), 2U);
  EXPECT_EQ(budget.Available(BudgetClass::kData), 0U);
  EXPECT_EQ(budget.Available(BudgetClass::kMetadata), 4U);
  EXPECT_EQ(TakeAll(budget, BudgetClass::kMetadata, tokens), 4U);
  EXPECT_EQ(budget.Available(BudgetClass::kLog), 1U);  // the device allows no more
}

TEST(ActiveBudget, NoLimitIsNoLimit) {
  ActiveBudget budget(0);
  Tokens tokens;
  for (int i = 0; i < 10'000; ++i) tokens.push_back(*budget.TryTake(BudgetClass::kData));
  EXPECT_GT(budget.Available(BudgetClass::kData), 1'000'000U);
  EXPECT_EQ(budget.Overcommitted(), 0U);
}

}  // namespace
}  // namespace isozone
