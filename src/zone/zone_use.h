// What a zone holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace isozone {

enum class ZoneUse : uint8_t { kFree, kSuperblock, kJournal, kCheckpoint, kLog, kData, kUnusable };
inline constexpr int kZoneUseCount = 7;

constexpr bool IsMetadata(ZoneUse use) {
  return use == ZoneUse::kSuperblock || use == ZoneUse::kJournal || use == ZoneUse::kCheckpoint;
}

constexpr std::string_view ZoneUseName(ZoneUse use) {
  constexpr std::array<std::string_view, kZoneUseCount> kNames = {"free", "superblock", "journal", "checkpoint",
                                                                  "log",  "data",       "unusable"};
  return kNames[static_cast<size_t>(use)];
}

}  // namespace isozone
