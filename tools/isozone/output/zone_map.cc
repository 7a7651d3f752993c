#include "isozone/output/zone_map.h"

#include <algorithm>

#include "base/uri.h"

namespace isozone::cli {
namespace {

constexpr int kMaxRows = 16;
constexpr int kLabelColumns = 8;
constexpr int kColumnStep = 32;  // rows of a multiple of 32 zones keep the dies of common devices in columns
constexpr int kMaxColumns = 4 * kColumnStep;

// The layout of the cells. If there are few, a cell is two characters wide.
struct Grid {
  uint32_t columns = 0;
  uint32_t zones_per_cell = 1;
  int cell_width = 1;  // characters
};

Grid GridFor(size_t zones, int width) {
  if (zones <= static_cast<size_t>(kColumnStep) * kMaxRows) return {.columns = kColumnStep, .cell_width = 2};
  const int room = std::min(width - kLabelColumns, kMaxColumns);
  const auto columns = static_cast<uint32_t>(std::max(kColumnStep, room / kColumnStep * kColumnStep));
  const uint64_t cells = uint64_t{columns} * kMaxRows;
  return {.columns = columns, .zones_per_cell = static_cast<uint32_t>(RoundUp(zones, cells) / cells)};
}

// Full height for a full cell, a dot for an empty one.
std::string_view FillGlyph(const ZoneCell& cell) {
  static constexpr std::array<std::string_view, 8> kGlyphs = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (cell.category == ZoneCategory::kUnusable) return "×";
  if (cell.written == 0) return "·";
  return kGlyphs[std::min<uint64_t>(cell.written * kGlyphs.size() / cell.capacity, kGlyphs.size() - 1)];
}

std::string CellText(const ZoneCell& cell, int width, const Console& console) {
  const CategoryLook& look = LookOf(cell.category);
  if (!console.color()) return fmt::format("{:<{}}", look.letter, width);
  std::string glyphs(FillGlyph(cell));
  for (int i = 1; i < width; ++i) glyphs += cell.written == 0 ? " " : FillGlyph(cell);
  return console.Paint(look.color, glyphs);
}

void PrintLegend(const ZoneTotals& totals, uint32_t zones_per_cell, Console& console) {
  std::string line;
  for (int i = 0; i < kZoneCategoryCount; ++i) {
    const CategoryLook& look = LookOf(static_cast<ZoneCategory>(i));
    const uint32_t count = totals.zones[static_cast<size_t>(i)];
    if (count == 0) continue;
    const std::string key =
        console.color() ? console.Paint(look.color, i == 0 ? "·" : "█") : std::string(1, look.letter);
    line += fmt::format("{}{} {} {}", line.empty() ? "" : "   ", key, look.name, count);
  }
  console.Print("{:>{}}{}\n", "", kLabelColumns, line);
  console.Print("{:>{}}one cell is {}{}\n", "", kLabelColumns,
                zones_per_cell == 1 ? "one zone" : fmt::format("{} zones", zones_per_cell),
                console.color() ? ", as high as it is written" : "");
}

}  // namespace

const CategoryLook& LookOf(ZoneCategory category) {
  static constexpr std::array<CategoryLook, kZoneCategoryCount> kLooks = {{
      {"free", '.', Color::kGrey, "#e5e7eb"},
      {"metadata", 'm', Color::kPurple, "#9b5de5"},
      {"log", 'l', Color::kRed, "#e5484d"},
      {"data", 'd', Color::kWhite, "#64748b"},
      {"data, short-lived", 's', Color::kOrange, "#f59e0b"},
      {"data, medium", 'M', Color::kGreen, "#3fa34d"},
      {"data, long", 'L', Color::kTeal, "#14a3b8"},
      {"data, extreme", 'X', Color::kBlue, "#3b76d6"},
      {"dead", '-', Color::kYellow, "#b9a58a"},
      {"unusable", '!', Color::kRed, "#111827"},
  }};
  return kLooks[static_cast<size_t>(category)];
}

ZoneCategory CategoryOf(const ZoneView& zone) {
  switch (zone.use) {
    case ZoneUse::kFree:
      return zone.device.write_pointer == 0 ? ZoneCategory::kFree : ZoneCategory::kDead;
    case ZoneUse::kMetadata:
      return ZoneCategory::kMetadata;
    case ZoneUse::kLog:
      return ZoneCategory::kLog;
    case ZoneUse::kUnusable:
      return ZoneCategory::kUnusable;
    case ZoneUse::kData:
      break;
  }
  if (zone.live == 0 && !zone.writing) return ZoneCategory::kDead;
  switch (zone.lifetime) {
    case Lifetime::kNotSet:
    case Lifetime::kNone:
      return ZoneCategory::kData;
    case Lifetime::kShort:
      return ZoneCategory::kShort;
    case Lifetime::kMedium:
      return ZoneCategory::kMedium;
    case Lifetime::kLong:
      return ZoneCategory::kLong;
    case Lifetime::kExtreme:
      return ZoneCategory::kExtreme;
  }
  return ZoneCategory::kData;
}

std::vector<ZoneCell> MakeCells(std::span<const ZoneView> zones, uint32_t zones_per_cell) {
  std::vector<ZoneCell> cells;
  for (size_t first = 0; first < zones.size(); first += zones_per_cell) {
    const auto members = zones.subspan(first, std::min<size_t>(zones_per_cell, zones.size() - first));
    ZoneCell cell{.first = static_cast<uint32_t>(first), .count = static_cast<uint32_t>(members.size())};
    std::array<uint64_t, kZoneCategoryCount> weight{};  // bytes, and 1 for a category that has none
    for (const ZoneView& zone : members) {
      const ZoneCategory category = CategoryOf(zone);
      if (category != ZoneCategory::kFree) weight[static_cast<size_t>(category)] += zone.device.write_pointer + 1;
      cell.capacity += zone.device.capacity;
      cell.written += zone.device.write_pointer;
      cell.live += zone.live;
      cell.active = cell.active || IsActive(zone.device.state);
    }
    cell.category = static_cast<ZoneCategory>(std::ranges::max_element(weight) - weight.begin());
    cells.push_back(cell);
  }
  return cells;
}

ZoneTotals TotalsOf(std::span<const ZoneView> zones) {
  ZoneTotals totals;
  for (const ZoneView& zone : zones) {
    ++totals.zones[static_cast<size_t>(CategoryOf(zone))];
    totals.capacity += zone.device.capacity;
    totals.written += zone.device.write_pointer;
    totals.live += zone.live;
  }
  return totals;
}

void PrintZoneMap(std::span<const ZoneView> zones, Console& console) {
  const Grid grid = GridFor(zones.size(), console.width());
  const std::vector<ZoneCell> cells = MakeCells(zones, grid.zones_per_cell);
  for (size_t row = 0; row < cells.size(); row += grid.columns) {
    std::string line;
    for (size_t i = row; i < std::min<size_t>(row + grid.columns, cells.size()); ++i) {
      line += CellText(cells[i], grid.cell_width, console);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    console.Print("{:>{}}  {}\n", cells[row].first, kLabelColumns - 2, line);
  }
  console.Write("\n");
  PrintLegend(TotalsOf(zones), grid.zones_per_cell, console);
}

}  // namespace isozone::cli
