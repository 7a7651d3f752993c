// The seed of a random test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace isozone {

// Returns `fallback`, so that a test does the same each time, or ISOZONE_TEST_SEED, which replays a failure. If that is
// "new", each call draws a seed, as the long tests of `make torture` want it. The test prints what it got.
inline uint64_t TestSeed(uint64_t fallback = 1) {
  const char* given = std::getenv("ISOZONE_TEST_SEED");
  if (given == nullptr) return fallback;
  if (std::string_view(given) == "new") return std::random_device{}();
  return std::strtoull(given, nullptr, 0);
}

}  // namespace isozone
