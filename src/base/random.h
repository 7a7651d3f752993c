// A small seeded generator (splitmix64): the same sequence from the same seed on every platform and library, so that
// a printed seed replays a failure.
#pragma once

#include <cstdint>

namespace isozone {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // Returns a number that is uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }
  // Returns a number that is uniform in [low, high], both included.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  // Returns true with `probability`, which is in [0, 1].
  bool Chance(double probability) { return Real() < probability; }
  // Returns a number that is uniform in [0, 1).
  double Real() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace isozone
