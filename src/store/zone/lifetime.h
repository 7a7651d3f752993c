// How long data is expected to live: RocksDB's Env::WriteLifeTimeHint, value by value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace isozone {

enum class Lifetime : uint8_t { kNotSet = 0, kNone = 1, kShort = 2, kMedium = 3, kLong = 4, kExtreme = 5 };
inline constexpr int kLifetimeCount = 6;

constexpr std::string_view LifetimeName(Lifetime l) {
  constexpr std::array<std::string_view, kLifetimeCount> kNames = {"not-set", "none", "short",
                                                                   "medium",  "long", "extreme"};
  return kNames[static_cast<size_t>(l)];
}

}  // namespace isozone
