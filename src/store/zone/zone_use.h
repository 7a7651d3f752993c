// ZoneUse: what a zone holds. ZoneWriter: who writes it.
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

// The holder of the lease of a zone.
enum class ZoneWriter : uint8_t { kNone, kMetadata, kLog, kFlush, kCompaction, kGc, kOther };
inline constexpr int kZoneWriterCount = 7;

constexpr std::string_view ZoneWriterName(ZoneWriter writer) {
  constexpr std::array<std::string_view, kZoneWriterCount> kNames = {"none",       "metadata", "log",  "flush",
                                                                     "compaction", "gc",       "other"};
  return kNames[static_cast<size_t>(writer)];
}

}  // namespace isozone
