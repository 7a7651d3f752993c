// The zone map as a self-contained SVG file. Each cell is a box that fills from below: in the colour of its category
// what is alive, above it lighter what is dead, and empty what is not written. Boxes with a dark edge are active zones.
#include <algorithm>

#include "base/uri.h"
#include "isozone/svg.h"
#include "isozone/zone_map.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMaxCells = 4096;
constexpr uint32_t kColumns = 64;
constexpr double kPitch = 14;  // pixels, as are all of the following
constexpr double kBox = 12;
constexpr double kMarginLeft = 64;
constexpr double kMarginRight = 24;
constexpr double kTop = 84;
constexpr double kLegendColumn = 224;
constexpr double kLegendRow = 22;
constexpr int kLegendEntriesPerRow = 4;

void DrawBox(SvgDocument& svg, const ZoneCell& cell, double x, double y) {
  const auto share = [&](uint64_t bytes) {
    return kBox * static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, cell.capacity));
  };
  const std::string_view color = LookOf(cell.category).fill_rgb;
  if (cell.category == ZoneCategory::kUnusable) {
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", x, y, kBox, kBox, color);
    return;
  }
  // The file system knows what is alive of data and logs; its own zones are alive as far as they are written.
  const uint64_t live = cell.category == ZoneCategory::kMetadata ? cell.written : std::min(cell.live, cell.written);
  const double written_height = share(cell.written);
  const double live_height = share(live);
  svg.Add(R"(<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}" opacity="0.35"/>)", x,
          y + kBox - written_height, kBox, written_height, color);
  if (live > 0) {
    svg.Add(R"(<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}"/>)", x, y + kBox - live_height, kBox,
            live_height, color);
  }
  if (cell.active) {
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#111827"/>)", x + 0.5, y + 0.5, kBox - 1,
            kBox - 1);
  }
}

void DrawLegend(SvgDocument& svg, const ZoneTotals& totals, double y) {
  int entry = 0;
  for (int i = 0; i < kZoneCategoryCount; ++i) {
    const CategoryLook& look = LookOf(static_cast<ZoneCategory>(i));
    const uint32_t count = totals.zones[static_cast<size_t>(i)];
    if (count == 0) continue;
    const double x = kMarginLeft + kLegendColumn * (entry % kLegendEntriesPerRow);
    const double top = y + kLegendRow * (entry / kLegendEntriesPerRow);
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", x, top, kBox, kBox, look.fill_rgb);
    svg.Text({.x = x + 18, .y = top + 11}, fmt::format("{}: {} zone{}", look.name, count, count == 1 ? "" : "s"));
    ++entry;
  }
}

double LegendHeight(const ZoneTotals& totals) {
  const auto entries = std::ranges::count_if(totals.zones, [](uint32_t count) { return count > 0; });
  return kLegendRow * static_cast<double>((entries + kLegendEntriesPerRow - 1) / kLegendEntriesPerRow);
}

}  // namespace

std::string ZoneMapSvg(std::span<const ZoneView> zones, const SvgCaption& caption) {
  const auto zones_per_cell = static_cast<uint32_t>(std::max<size_t>(1, RoundUp(zones.size(), kMaxCells) / kMaxCells));
  const std::vector<ZoneCell> cells = MakeCells(zones, zones_per_cell);
  const ZoneTotals totals = TotalsOf(zones);
  const auto rows = static_cast<double>(RoundUp(cells.size(), kColumns) / kColumns);
  const double legend_y = kTop + rows * kPitch + 18;
  const double note_y = legend_y + LegendHeight(totals) + 12;

  SvgDocument svg(kMarginLeft + kColumns * kPitch + kMarginRight, note_y + 18, caption.title);
  svg.Text({.x = kMarginLeft, .y = 36, .size = 20, .fill = "#111827", .bold = true}, caption.title);
  svg.Text({.x = kMarginLeft, .y = 60}, caption.subtitle);
  svg.Add(R"(<defs><pattern id="free" width="{0}" height="{0}" patternUnits="userSpaceOnUse" x="{1}" y="{2}">)"
          R"(<rect width="{3}" height="{3}" fill="{4}"/></pattern></defs>)",
          kPitch, kMarginLeft, kTop, kBox, LookOf(ZoneCategory::kFree).fill_rgb);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const double y = kTop + static_cast<double>(row) * kPitch;
    const size_t first = row * kColumns;
    const size_t count = std::min<size_t>(kColumns, cells.size() - first);
    svg.Add(R"svg(<rect x="{}" y="{}" width="{}" height="{}" fill="url(#free)"/>)svg", kMarginLeft, y,
            static_cast<double>(count) * kPitch, kPitch);
    svg.Text({.x = kMarginLeft - 8, .y = y + 10, .size = 10, .fill = "#6b7280", .anchor = "end"},
             std::to_string(cells[first].first));
    for (size_t i = first; i < first + count; ++i) {
      if (cells[i].category == ZoneCategory::kFree) continue;
      DrawBox(svg, cells[i], kMarginLeft + static_cast<double>(i - first) * kPitch, y);
    }
  }
  DrawLegend(svg, totals, legend_y);
  svg.Text({.x = kMarginLeft, .y = note_y, .size = 11, .fill = "#6b7280"},
           fmt::format("One box is {}. It fills from below: solid is alive, pale is dead, grey is not written. "
                       "A dark edge is an active zone.",
                       zones_per_cell == 1 ? "one zone" : fmt::format("{} zones", zones_per_cell)));
  return std::move(svg).Finish();
}

}  // namespace isozone::cli
