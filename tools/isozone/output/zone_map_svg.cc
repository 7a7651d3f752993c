// The zone map as a self-contained SVG file. Each cell is a box that fills from below: live bytes in the colour of its
// category, dead bytes above them in a lighter one, and the part that is not written as a mere tint. Boxes with a dark
// edge are active zones.
#include <algorithm>

#include "base/uri.h"
#include "isozone/output/svg.h"
#include "isozone/output/zone_map.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMaxCells = 4096;
constexpr double kMapWidth = 896;  // pixels, as are all of the following
constexpr double kLegendColumn = 224;
constexpr double kLegendRow = 22;
constexpr int kLegendEntriesPerRow = 4;
constexpr double kSwatch = 12;

struct SvgGrid {
  uint32_t columns = 0;
  double pitch = 0;
  double box() const { return pitch - kGap; }
};

// Rows of a multiple of 32 zones keep the dies of common devices in columns.
SvgGrid SvgGridFor(size_t cells) {
  const uint32_t columns = cells <= 512 ? 32 : 64;
  return {columns, kMapWidth / columns};
}

void DrawBox(SvgDocument& svg, const ZoneCell& cell, double x, double y, double box) {
  const auto fill = [&](uint64_t bytes, double opacity) {
    const double share = static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, cell.capacity));
    svg.Add(R"(<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}" opacity="{}"/>)", x, y + box * (1 - share),
            box, box * share, LookOf(cell.category).fill_rgb, opacity);
  };
  if (cell.category == ZoneCategory::kUnusable) return fill(cell.capacity, 1);
  // The file system knows how much data and logs are live. Its own zones count as live as far as they are written.
  const uint64_t live = cell.category == ZoneCategory::kMetadata ? cell.written : std::min(cell.live, cell.written);
  fill(cell.capacity, 0.2);
  fill(cell.written, 0.3);
  fill(live, 1);
  if (cell.active) {
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#111827"/>)", x + 0.5, y + 0.5, box - 1,
            box - 1);
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
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", x, top, kSwatch, kSwatch, look.fill_rgb);
    svg.Text({.x = x + 18, .y = top + 11}, fmt::format("{}: {} zone{}", look.name, count, count == 1 ? "" : "s"));
    ++entry;
  }
}

double LegendHeight(const ZoneTotals& totals) {
  const auto entries = std::ranges::count_if(totals.zones, [](uint32_t count) { return count > 0; });
  return kLegendRow * static_cast<double>((entries + kLegendEntriesPerRow - 1) / kLegendEntriesPerRow);
}

void DrawRow(SvgDocument& svg, std::span<const ZoneCell> cells, const SvgGrid& grid, double y) {
  svg.Add(R"svg(<rect x="{}" y="{}" width="{}" height="{}" fill="url(#free)"/>)svg", kMarginLeft, y,
          static_cast<double>(cells.size()) * grid.pitch, grid.pitch);
  svg.Text({.x = kMarginLeft - 8, .y = y + grid.pitch / 2 + 3, .size = 10, .fill = "#6b7280", .anchor = "end"},
           std::to_string(cells.front().first));
  double x = kMarginLeft;
  for (const ZoneCell& cell : cells) {
    if (cell.category != ZoneCategory::kFree) DrawBox(svg, cell, x, y, grid.box());
    x += grid.pitch;
  }
}

}  // namespace

std::string ZoneMapSvg(std::span<const ZoneView> zones, const SvgCaption& caption) {
  const auto zones_per_cell = static_cast<uint32_t>(std::max<size_t>(1, RoundUp(zones.size(), kMaxCells) / kMaxCells));
  const std::vector<ZoneCell> cells = MakeCells(zones, zones_per_cell);
  const ZoneTotals totals = TotalsOf(zones);
  const SvgGrid grid = SvgGridFor(cells.size());
  const auto rows = static_cast<double>(RoundUp(cells.size(), grid.columns) / grid.columns);
  const double legend_y = kTop + rows * grid.pitch + 16;
  const double note_y = legend_y + LegendHeight(totals) + 12;

  SvgDocument svg(kMarginLeft + kMapWidth + kMarginRight, note_y + 18, caption.title);
  svg.Text({.x = kMarginLeft, .y = 36, .size = 20, .fill = "#111827", .bold = true}, caption.title);
  svg.Text({.x = kMarginLeft, .y = 60}, caption.subtitle);
  svg.Add(R"(<defs><pattern id="free" width="{0}" height="{0}" patternUnits="userSpaceOnUse" x="{1}" y="{2}">)"
          R"(<rect width="{3}" height="{3}" fill="{4}"/></pattern></defs>)",
          grid.pitch, kMarginLeft, kTop, grid.box(), LookOf(ZoneCategory::kFree).fill_rgb);
  for (size_t first = 0; first < cells.size(); first += grid.columns) {
    DrawRow(svg, std::span(cells).subspan(first, std::min<size_t>(grid.columns, cells.size() - first)), grid,
            kTop + static_cast<double>(first / grid.columns) * grid.pitch);
  }
  DrawLegend(svg, totals, legend_y);
  svg.Text({.x = kMarginLeft, .y = note_y, .size = 11, .fill = "#6b7280"},
           fmt::format("One box is {}. It fills from below: solid is live, pale is dead, a tint is not written. "
                       "A dark edge is an active zone.",
                       zones_per_cell == 1 ? "one zone" : fmt::format("{} zones", zones_per_cell)));
  return std::move(svg).Finish();
}

}  // namespace isozone::cli
