// Doubts: how sure identification is. It bounds the probability that any zone is in a wrong group, and says how many
// confirmations a zone needs.
//
// A zone is first proposed for a group, by a guess or by halving; then confirmations follow, each of them a measurement
// that knows nothing of those before. A confirmation either rejects the zone or lets it pass. It lets a zone of another
// group pass only if the needle is late by chance, with a probability of at most p, which was calibrated. Otherwise the
// needle is too early for the group, which never happens to a zone of the group itself: nothing makes a read faster.
//
// Let W be the number of wrong zones that come to the m-th confirmation. All but p W of them are too early there. So
// the number of zones that were, D, tells what W may be: W <= U(D) / (1 - p), where U is the upper bound of the mean of
// a Poisson distribution that shows D. So after n confirmations at most
//
//   min over m <= n of  U(D_m) / (1 - p) * p^(n - m + 1)
//
// wrong zones are left on average, and the probability that there is one is not higher. This assumes that a delay that
// two confirmations of one zone meet is not the same one: they are apart in time, and their pivots have other loads.
//
// Halving proposes a set of groups. Its first confirmation finds the group in the set, and the second one, with
// reversed loads, would find a zone of another group of the set too early: there are always two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace isozone {

// Returns the mean of a Poisson distribution above which `seen` or fewer events happen with a probability of at most
// Doubts::kBoundFails.
double PoissonUpper(double seen);

// Thread safety: none.
class Doubts {
 public:
  enum class Proposal : uint8_t { kGuess, kHalving };
  static constexpr size_t kMostPasses = 4;
  // The probability that a bound itself does not hold.
  static constexpr double kBoundFails = 0.001;
  // A zone needs another confirmation if the zones that passed so far may include a wrong one with this probability.
  static constexpr double kMayBeWrong = 0.05;

  // Sets an upper bound of the probability p. The counts stay.
  void Calibrated(double passes_falsely) { passes_falsely_ = passes_falsely; }
  // Notes that the confirmation number `pass`, which begins at 1, found so many zones too early.
  void Reject(Proposal proposal, size_t pass, uint64_t zones);
  // Returns whether zones that have passed this confirmation need no other.
  bool Suffices(Proposal proposal, size_t pass) const;
  // Notes that zones have joined their groups after `pass` confirmations.
  void Join(Proposal proposal, size_t pass);
  // Notes that a zone has joined its group in another way, and is in a wrong one with this probability.
  void JoinOtherwise(double probability) { otherwise_ += probability; }

  // Returns an upper bound of the probability that any zone is in a wrong group.
  double any_wrong() const;

 private:
  struct Pass {
    double rejected = 0;
    double bound = 0;  // when a zone last joined after this confirmation; 0: none has
  };

  // Returns an upper bound of the number of wrong zones among those that have passed.
  double Bound(Proposal proposal, size_t pass) const;

  double passes_falsely_ = 1;
  double otherwise_ = 0;
  std::array<std::array<Pass, kMostPasses>, 2> passes_{};  // by proposal
};

}  // namespace isozone
