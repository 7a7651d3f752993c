// Chooses the record of an operation as YCSB does (site.ycsb.generator): all numbers are from 0, all sequences follow
// from the generator that is passed in.
//
// Zipfian is the algorithm of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994): ranks
// 0 and 1 have exactly the probability 1 / (rank + 1)^0.99 / zeta(n), the others follow from a power function that is
// 19 % above it at rank 2, less than 3 % away from rank 9 on. zeta(n) is a sum over all ranks; when n grows, only the
// new ranks are added.
//
// Thread safety: none for an object that grows; copies are independent.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace isozone {

inline constexpr double kZipfianConstant = 0.99;

// Returns the FNV-1a hash of the eight bytes of `value`, lowest first, without its sign: YCSB's Utils.fnvhash64.
uint64_t FnvHash64(uint64_t value);

class Uniform {
 public:
  Uniform(uint64_t low, uint64_t high) : low_(low), high_(high) {}
  // Returns a number in [low, high], both included.
  uint64_t Next(Random& random) const { return random.Between(low_, high_); }

 private:
  uint64_t low_;
  uint64_t high_;
};

class Zipfian {
 public:
  // Chooses among the ranks [0, items), where items > 0. Takes time in proportion to `items`.
  explicit Zipfian(uint64_t items);
  // Like the other constructor, but takes no such time, since zeta(items) is known.
  Zipfian(uint64_t items, double zeta);

  // Raises the number of ranks to `items`, if it is lower.
  void GrowTo(uint64_t items);
  uint64_t Next(Random& random) const;

  uint64_t items() const { return items_; }
  double zeta() const { return zeta_; }

 private:
  void DeriveEta();

  uint64_t items_;
  double zeta_;     // the sum of 1 / rank^0.99 over the ranks [1, items]
  double eta_ = 0;  // makes the power function meet the exact part at rank 2
};

// Zipfian, but the popular items lie anywhere: a rank among ten billion, hashed into [0, items).
class ScrambledZipfian {
 public:
  static constexpr uint64_t kRanks = 10'000'000'000;
  static constexpr double kZeta = 26.46902820178302;  // of kRanks

  explicit ScrambledZipfian(uint64_t items) : ranks_(kRanks, kZeta), items_(items) {}
  uint64_t Next(Random& random) const { return FnvHash64(ranks_.Next(random)) % items_; }

 private:
  Zipfian ranks_;
  uint64_t items_;
};

// The newest item is the most popular, the one before it the second, and so on.
class Latest {
 public:
  explicit Latest(uint64_t items) : age_(items) {}
  // Chooses among the items [0, items), of which there are at least as many as at the last call.
  uint64_t Next(Random& random, uint64_t items);

 private:
  Zipfian age_;
};

}  // namespace isozone
