#include "device/izg/doubts.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace isozone {
namespace {

// The probability of `seen` or fewer events.
double PoissonBelow(double mean, double seen) {
  double sum = 0;
  for (int count = 0; count <= seen; ++count) sum += std::exp(count * std::log(mean) - mean - std::lgamma(count + 1.0));
  return sum;
}

// From here on, the normal approximation by Wilson and Hilferty is right to a thousandth.
constexpr double kManyEvents = 1000;
constexpr double kNormalQuantile = 3.0902;  // of Doubts::kBoundFails

}  // namespace

double PoissonUpper(double seen) {
  if (seen >= kManyEvents) {
    const double next = seen + 1;
    return next * std::pow(1 - 1 / (9 * next) + kNormalQuantile / (3 * std::sqrt(next)), 3);
  }
  double low = 0, high = 10 + 2 * seen + 10 * std::sqrt(seen);
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (PoissonBelow(middle, seen) > Doubts::kBoundFails ? low : high) = middle;
  }
  return high;
}

void Doubts::Reject(Proposal proposal, size_t pass, uint64_t zones) {
  assert(pass >= 1 && pass <= kMostPasses);
  passes_[static_cast<size_t>(proposal)][pass - 1].rejected += static_cast<double>(zones);
}

double Doubts::Bound(Proposal proposal, size_t pass) const {
  const auto& passes = passes_[static_cast<size_t>(proposal)];
  double least = INFINITY;
  for (size_t i = 0; i < pass; ++i) {
    const double wrong = PoissonUpper(passes[i].rejected) / std::max(0.01, 1 - passes_falsely_);
    least = std::min(least, wrong * std::pow(passes_falsely_, static_cast<double>(pass - i)));
  }
  return least;
}

bool Doubts::Suffices(Proposal proposal, size_t pass) const {
  if (proposal == Proposal::kHalving && pass == 1) return false;
  return pass == kMostPasses || Bound(proposal, pass) <= kMayBeWrong;
}

void Doubts::Join(Proposal proposal, size_t pass) {
  passes_[static_cast<size_t>(proposal)][pass - 1].bound = Bound(proposal, pass);
}

double Doubts::any_wrong() const {
  double sum = otherwise_;
  for (const auto& passes : passes_) {
    for (size_t i = 0; i < kMostPasses; ++i) {
      // The bounds of i + 1 counts and that of p must all hold.
      if (passes[i].bound > 0) sum += passes[i].bound + kBoundFails * static_cast<double>(i + 2);
    }
  }
  return std::min(1.0, sum);
}

}  // namespace isozone
