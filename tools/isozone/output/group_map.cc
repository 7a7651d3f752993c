#include "isozone/output/group_map.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/uri.h"
#include "isozone/output/svg.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kColumns = 32;
constexpr uint32_t kMostRows = 32;  // of zones that are drawn; one line tells how many more there are
constexpr double kPitch = 28;       // pixels

struct ChannelLook {
  Color color;
  std::string_view fill_rgb;
};

// Further channels repeat the looks; adjacent ones still differ.
const ChannelLook& LookOf(uint16_t channel) {
  static constexpr std::array<ChannelLook, 8> kLooks = {{{Color::kBlue, "#3b76d6"},
                                                         {Color::kOrange, "#f59e0b"},
                                                         {Color::kGreen, "#3fa34d"},
                                                         {Color::kRed, "#e5484d"},
                                                         {Color::kPurple, "#9b5de5"},
                                                         {Color::kTeal, "#14a3b8"},
                                                         {Color::kYellow, "#a98467"},
                                                         {Color::kGrey, "#64748b"}}};
  return kLooks[channel % kLooks.size()];
}

uint32_t DrawnZones(const ZoneGroups& groups) {
  return static_cast<uint32_t>(std::min<size_t>(groups.group_of_zone.size(), kColumns * kMostRows));
}

std::string Remark(const ZoneGroups& groups) {
  const size_t zones = groups.group_of_zone.size();
  std::string text = "A number is a group: its zones share a die. A colour is a channel.";
  if (DrawnZones(groups) < zones) text += fmt::format(" {} more zones are not drawn.", zones - DrawnZones(groups));
  return text;
}

std::string Partition(const ZoneGroups& groups) {
  if (groups.group_count() == 0) return "no zone slows another: every zone is a group of its own";
  if (groups.group_count() == 1 && groups.group_of_zone.size() > 1) {
    return "1 independent zone group: all zones lie on the same dies, and every zone slows every other";
  }
  const std::set<uint16_t> channels(groups.channel_of_group.begin(), groups.channel_of_group.end());
  return fmt::format("{} independent zone group{} on {} channel{}", groups.group_count(),
                     groups.group_count() == 1 ? "" : "s", channels.size(), channels.size() == 1 ? "" : "s");
}

}  // namespace

std::string GroupSummary(const ZoneGroups& groups) {
  return Partition(groups) + (groups.zone_bandwidth == 0 ? ""
                                                         : fmt::format("; a zone alone is programmed at {}/s",
                                                                       FormatSize(groups.zone_bandwidth)));
}

std::optional<int> LeastConfidence(const ZoneGroups& groups) {
  std::optional<int> least;
  for (size_t zone = 0; zone < groups.group_of_zone.size(); ++zone) {
    if (groups.group_of_zone[zone] == ZoneGroups::kUnknown) continue;
    least = std::min<int>(least.value_or(100), groups.confidence_percent[zone]);
  }
  return least;
}

std::string ConfidenceText(const ZoneGroups& groups) {
  const std::optional<int> least = LeastConfidence(groups);
  return least ? fmt::format("the group of every zone is at least {} % sure", *least) : "no zone is in a group";
}

void PrintGroupMap(const ZoneGroups& groups, Console& console) {
  if (groups.group_count() == 0) return;
  const uint32_t zones = DrawnZones(groups);
  const auto width = std::to_string(groups.group_count() - 1).size();
  for (uint32_t row = 0; row < zones; row += kColumns) {
    std::string line;
    for (uint32_t zone = row; zone < std::min(row + kColumns, zones); ++zone) {
      const uint16_t group = groups.group_of_zone[zone];
      line += ' ';
      line += group == ZoneGroups::kUnknown
                  ? fmt::format("{:>{}}", "?", width)
                  : console.Paint(LookOf(groups.channel_of_group[group]).color, fmt::format("{:>{}}", group, width));
    }
    console.Print("{:>6} {}\n", row, line);
  }
  console.Print("\n        {}\n", Remark(groups));
}

std::string GroupMapSvg(const ZoneGroups& groups, std::string_view title, std::string_view subtitle) {
  const uint32_t zones = groups.group_count() == 0 ? 0 : DrawnZones(groups);
  const uint32_t rows = (zones + kColumns - 1) / kColumns;
  const double bottom = kTop + rows * kPitch;
  SvgDocument svg(kMarginLeft + kColumns * kPitch + kMarginRight, bottom + 40, title);
  svg.Text({.x = kMarginLeft, .y = 36, .size = 20, .fill = "#111827", .bold = true}, title);
  svg.Text({.x = kMarginLeft, .y = 60}, subtitle);
  for (uint32_t zone = 0; zone < zones; ++zone) {
    const double x = kMarginLeft + zone % kColumns * kPitch;
    const double y = kTop + zone / kColumns * kPitch;
    const double middle = y + kPitch / 2 + 3;
    if (zone % kColumns == 0) {
      svg.Text({.x = kMarginLeft - 8, .y = middle, .size = 10, .fill = "#6b7280", .anchor = "end"},
               std::to_string(zone));
    }
    const uint16_t group = groups.group_of_zone[zone];
    const bool known = group != ZoneGroups::kUnknown;
    svg.Add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", x, y, kPitch - kGap, kPitch - kGap,
            known ? LookOf(groups.channel_of_group[group]).fill_rgb : "#e5e7eb");
    svg.Text({.x = x + (kPitch - kGap) / 2, .y = middle, .size = 11, .fill = "#ffffff", .anchor = "middle"},
             known ? std::to_string(group) : "?");
  }
  svg.Text({.x = kMarginLeft, .y = bottom + 20, .size = 11, .fill = "#6b7280"},
           zones == 0 ? GroupSummary(groups) : Remark(groups));
  return std::move(svg).Finish();
}

}  // namespace isozone::cli
