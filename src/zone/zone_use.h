// ZoneUse: what a zone holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace isozone {

enum class ZoneUse : uint8_t { kFree, kMetadata, kLog, kData, kUnusable };
inline constexpr int kZoneUseCount = 5;

constexpr std::string_view ZoneUseName(ZoneUse use) {
  constexpr std::array<std::string_view, kZoneUseCount> kNames = {"free", "metadata", "log", "data", "unusable"};
  return kNames[static_cast<size_t>(use)];
}

}  // namespace isozone
