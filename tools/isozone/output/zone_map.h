// A map of the zones: what each zone, or each run of adjacent zones if there are many, is used for and how full it is.
// It is drawn for a terminal and as an SVG file from the same cells.
//
// A cell has the category that holds most of its written bytes. A zone is "dead" if nothing in it is live.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isozone/output/console.h"
#include "store/file_system.h"

namespace isozone::cli {

enum class ZoneCategory : uint8_t { kFree, kMetadata, kLog, kData, kShort, kMedium, kLong, kExtreme, kDead, kUnusable };
inline constexpr int kZoneCategoryCount = 10;

struct CategoryLook {
  std::string_view name;
  char letter;                // shown if there is no colour
  Color color;                // on a terminal
  std::string_view fill_rgb;  // in SVG
};
const CategoryLook& LookOf(ZoneCategory category);

ZoneCategory CategoryOf(const ZoneView& zone);

struct ZoneCell {
  uint32_t first = 0;  // zone
  uint32_t count = 0;  // zones
  ZoneCategory category = ZoneCategory::kFree;
  uint64_t capacity = 0;  // bytes, as are the next two
  uint64_t written = 0;
  uint64_t live = 0;
  bool active = false;  // one of its zones holds an active resource
};

// Returns cells of `zones_per_cell` (> 0) zones each; the last one may have fewer.
std::vector<ZoneCell> MakeCells(std::span<const ZoneView> zones, uint32_t zones_per_cell);

struct ZoneTotals {
  std::array<uint32_t, kZoneCategoryCount> zones{};  // by category
  uint64_t capacity = 0;                             // bytes, as are the next two
  uint64_t written = 0;
  uint64_t live = 0;
};
ZoneTotals TotalsOf(std::span<const ZoneView> zones);

void PrintZoneMap(std::span<const ZoneView> zones, Console& console);

struct SvgCaption {
  std::string title;
  std::string subtitle;
};
std::string ZoneMapSvg(std::span<const ZoneView> zones, const SvgCaption& caption);

}  // namespace isozone::cli
