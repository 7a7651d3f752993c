// The seed of a random test.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace isozone {

// ISOZONE_TEST_SEED, which replays a failure, or `fallback`.
inline uint64_t TestSeed(uint64_t fallback) {
  const char* given = std::getenv("ISOZONE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : fallback;
}

}  // namespace isozone
