// The two drawings of an interference measurement, with a mark for each zone: bars on a terminal, dots in SVG.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/uri.h"
#include "isozone/bench/interference.h"
#include "isozone/output/svg.h"

namespace isozone::cli {
namespace {

constexpr std::array<Sharing, 4> kSharings = {Sharing::kUnknown, Sharing::kNothing, Sharing::kChannel, Sharing::kDie};

struct SharingLook {
  Color color;
  std::string_view rgb;
};

SharingLook LookOf(Sharing sharing) {
  switch (sharing) {
    case Sharing::kUnknown:
      return {Color::kBlue, "#3b76d6"};
    case Sharing::kNothing:
      return {Color::kGreen, "#3fa34d"};
    case Sharing::kChannel:
      return {Color::kYellow, "#f59e0b"};
    case Sharing::kDie:
      return {Color::kRed, "#e5484d"};
  }
  return {Color::kBlue, "#3b76d6"};
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1000; }

std::string TitleOf(DeviceOp op) { return op == DeviceOp::kRead ? "Reads beside a reader" : "Writes beside a writer"; }

constexpr int kTicks = 5;

// The top of the axis in microseconds: above every value, and kTicks times a round number.
double AxisTop(const InterferenceSeries& series) {
  int64_t highest = series.alone_ns;
  for (const InterferencePoint& point : series.points) highest = std::max(highest, point.median_ns);
  const double tick = std::max(1.0, Microseconds(highest)) / kTicks;
  const double decade = std::pow(10, std::floor(std::log10(tick)));
  for (const double round : {1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (tick <= round * decade) return kTicks * round * decade;
  }
  return kTicks * 10 * decade;
}

constexpr int kRowsPerTick = 2;
constexpr int kChartRows = kTicks * kRowsPerTick;
constexpr int kAxisColumns = 10;

// The part of a bar in `row` (0 is the lowest), in eighths of its height.
std::string_view BarGlyph(double value, double top, int row) {
  static constexpr std::array<std::string_view, 9> kGlyphs = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double eighths = (value / top * kChartRows - row) * 8;
  return kGlyphs[static_cast<size_t>(std::clamp(std::lround(eighths), 0L, 8L))];
}

void PrintBars(std::span<const InterferencePoint> points, double top, Console& console) {
  for (int row = kChartRows - 1; row >= 0; --row) {
    const std::string label =
        row % kRowsPerTick == 0 ? fmt::format("{:.0f} us ", top * row / kChartRows) : "";  // at the row's lower edge
    std::string line;
    for (const InterferencePoint& point : points) {
      line += console.Paint(LookOf(point.sharing).color, BarGlyph(Microseconds(point.median_ns), top, row));
    }
    console.Print("{:>{}}{}\n", label, kAxisColumns, line);
  }
  std::string axis;
  for (const InterferencePoint& point : points) {
    if (point.distance % 8 != 0) continue;
    const size_t column = point.distance - points.front().distance;
    if (axis.size() <= column) axis += std::string(column - axis.size(), ' ') + std::to_string(point.distance);
  }
  console.Print("{:>{}}{}\n", "", kAxisColumns, axis);
}

}  // namespace

void PrintInterference(const InterferenceSeries& series, Console& console) {
  console.Print("{} (median latency, by distance from the neighbour's zone)\n", console.Bold(TitleOf(series.op)));
  const double top = AxisTop(series);
  const auto columns = static_cast<size_t>(std::max(16, console.width() - kAxisColumns - 2));
  const std::span<const InterferencePoint> points = series.points;
  for (size_t first = 0; first < points.size(); first += columns) {
    PrintBars(points.subspan(first, std::min(columns, points.size() - first)), top, console);
  }
  console.Print("  {:<26}{:>8.0f} us\n", "alone", Microseconds(series.alone_ns));
  for (const Sharing sharing : kSharings) {
    const auto band = series.Band(sharing);
    if (!band) continue;
    const std::string name = fmt::format("{:<26}", fmt::format("beside: {}", SharingName(sharing)));
    console.Print("  {}{:>8.0f} us\n", console.Paint(LookOf(sharing).color, name), Microseconds(*band));
  }
  console.Write("\n");
}

namespace {

constexpr double kWidth = 920;  // pixels, as are all of these
constexpr double kLeft = 76;
constexpr double kPlotWidth = 620;
constexpr double kPlotHeight = 220;
constexpr double kPanelHeight = 300;
constexpr double kHeader = 76;

void DrawGrid(SvgDocument& svg, const InterferenceSeries& series, double y0, double top) {
  svg.Text({.x = kLeft, .y = y0 - kPlotHeight - 14, .size = 14, .fill = "#111827", .bold = true}, TitleOf(series.op));
  for (int i = 0; i <= kTicks; ++i) {
    const double y = y0 - kPlotHeight * i / kTicks;
    svg.Add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#e5e7eb"/>)", kLeft, y, kLeft + kPlotWidth, y);
    svg.Text({.x = kLeft - 8, .y = y + 4, .size = 11, .anchor = "end"}, fmt::format("{:.0f} us", top * i / kTicks));
  }
}

void DrawPanel(SvgDocument& svg, const InterferenceSeries& series, double y0) {
  const double top = AxisTop(series);
  const auto y_of = [&](int64_t ns) { return y0 - kPlotHeight * Microseconds(ns) / top; };
  const double step = kPlotWidth / static_cast<double>(series.points.size() + 1);
  DrawGrid(svg, series, y0, top);
  for (const InterferencePoint& point : series.points) {
    const double x = kLeft + step * point.distance;
    svg.Add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)", x, y_of(point.median_ns),
            LookOf(point.sharing).rgb);
    if (point.distance % 8 == 0) {
      svg.Text({.x = x, .y = y0 + 16, .size = 11, .anchor = "middle"}, std::to_string(point.distance));
    }
  }
  svg.Text({.x = kLeft + kPlotWidth / 2, .y = y0 + 34, .size = 11, .anchor = "middle"},
           "distance from the neighbour's zone, in zones");

  double label_y = y0 - kPlotHeight + 10;
  const double label_x = kLeft + kPlotWidth + 16;
  for (auto it = kSharings.rbegin(); it != kSharings.rend(); ++it) {
    const auto band = series.Band(*it);
    if (!band) continue;
    svg.Add(R"(<circle cx="{}" cy="{}" r="4" fill="{}"/>)", label_x, label_y - 4, LookOf(*it).rgb);
    svg.Text({.x = label_x + 12, .y = label_y}, fmt::format("{}: {:.0f} us", SharingName(*it), Microseconds(*band)));
    label_y += 22;
  }
  svg.Text({.x = label_x + 12, .y = label_y}, fmt::format("alone: {:.0f} us", Microseconds(series.alone_ns)));
}

}  // namespace

std::string InterferenceSvg(const std::vector<InterferenceSeries>& series, const std::string& device,
                            uint64_t transfer) {
  const std::string title = "Zone interference";
  SvgDocument svg(kWidth, kHeader + kPanelHeight * static_cast<double>(series.size()), title);
  svg.Text({.x = kLeft, .y = 32, .size = 18, .fill = "#111827", .bold = true}, title);
  svg.Text({.x = kLeft, .y = 52}, fmt::format("{}: median latency of {} commands at queue depth 1, beside the same on "
                                              "another zone",
                                              device, FormatSize(transfer)));
  double y0 = kHeader + kPlotHeight + 24;
  for (const InterferenceSeries& one : series) {
    DrawPanel(svg, one, y0);
    y0 += kPanelHeight;
  }
  return std::move(svg).Finish();
}

}  // namespace isozone::cli
