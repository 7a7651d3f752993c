#include "store/zone/allocator/active_budget.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace isozone {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<uint32_t>::max();

constexpr int64_t Over(int64_t a, int64_t b) { return std::max<int64_t>(a - b, 0); }

}  // namespace

static_assert(std::accumulate(ActiveBudget::kReserve.begin(), ActiveBudget::kReserve.end(), 0U) ==
              ActiveBudget::kReserveTotal);

ActiveBudget::ActiveBudget(uint32_t limit) : limit_(limit == 0 ? kUnlimited : int64_t{limit}) {
  assert(limit_ >= kReserveTotal);
}

std::optional<ActiveBudget::Token> ActiveBudget::TryTake(BudgetClass c) {
  if (Available(c) == 0) return std::nullopt;
  return Token(*this, c);
}

uint32_t ActiveBudget::Available(BudgetClass c) const {
  const int64_t own = Over(ReserveOf(c), used(c));
  return static_cast<uint32_t>(std::min(own + Over(Rest(), 0), Over(limit_ - withheld_, used())));
}

uint32_t ActiveBudget::Overcommitted() const { return static_cast<uint32_t>(Over(0, Rest())); }

uint32_t ActiveBudget::used() const { return std::accumulate(used_.begin(), used_.end(), 0U); }

int64_t ActiveBudget::Rest() const {
  int64_t rest = limit_ - withheld_ - kReserveTotal;
  for (size_t c = 0; c < used_.size(); ++c) rest -= Over(used_[c], kReserve[c]);
  return rest;
}

}  // namespace isozone
