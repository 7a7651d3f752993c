#include "isozone/output/report.h"

#include <string_view>

#include <fmt/chrono.h>

#include "insight/stats/figures_json.h"
#include "store/mount/figure_sources.h"

namespace isozone::cli {

Json GeometryJson(const DeviceGeometry& geometry) {
  return {{"block_size", geometry.block_size},         {"zone_count", geometry.zone_count},
          {"zone_size", geometry.zone_size},           {"zone_capacity", geometry.zone_capacity},
          {"max_open_zones", geometry.max_open_zones}, {"max_active_zones", geometry.max_active_zones},
          {"max_transfer", geometry.max_transfer},     {"max_append", geometry.max_append},
          {"optimal_write", geometry.optimal_write},   {"fua_covers_zone", geometry.fua_covers_zone}};
}

Json CountersJson(const DeviceCounters& counters) {
  const FileCounters none;
  FigureSources sources(none);
  sources.device = counters;
  return SectionJson(FiguresOf(sources), "device_lifetime");
}

Json SpaceJson(const SpaceInfo& space) {
  const FileCounters none;
  FigureSources sources(none);
  sources.space = space;
  constexpr std::string_view kUnit = "_bytes";
  const Json section = SectionJson(FiguresOf(sources), "space");
  Json json;
  for (const auto& [key, value] : section.items()) {
    json[key.ends_with(kUnit) ? key.substr(0, key.size() - kUnit.size()) : key] = value;
  }
  return json;
}

Json MetadataJson(const MetadataCopies& metadata) {
  Json whole = Json::array();
  for (const std::vector<ZoneId>& zones : metadata.whole) {
    Json copy = Json::array();
    for (const ZoneId zone : zones) copy.push_back(zone.value());
    whole.push_back(std::move(copy));
  }
  return {{"copies", metadata.wanted}, {"whole", std::move(whole)}};
}

std::string CopiesText(const std::vector<std::vector<ZoneId>>& copies) {
  std::string text;
  for (const std::vector<ZoneId>& zones : copies) {
    if (!text.empty()) text += " and ";
    for (size_t i = 0; i < zones.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", zones[i].value());
  }
  return text.empty() ? "none" : text;
}

Json ZoneGroupsJson(const ZoneGroups* groups) {
  if (groups == nullptr) return {};
  return {{"groups", groups->group_count()},
          {"zone_bandwidth", groups->zone_bandwidth},
          {"group_of_zone", groups->group_of_zone},
          {"confidence_percent", groups->confidence_percent},
          {"channel_of_group", groups->channel_of_group}};
}

Json ZoneJson(const ZoneView& zone) {
  return {{"zone", zone.device.zone.value()},
          {"state", ZoneStateName(zone.device.state)},
          {"use", ZoneUseName(zone.use)},
          {"capacity", zone.device.capacity},
          {"written", zone.device.write_pointer},
          {"live", zone.live},
          {"lifetime", LifetimeName(zone.lifetime)},
          {"heat", ZoneHeatName(zone.heat)},
          {"writing", zone.writing}};
}

Json FileInZoneJson(const FileInZone& file) {
  return {{"inode", file.inode}, {"paths", file.paths}, {"kind", FileKindName(file.kind)}, {"bytes", file.bytes}};
}

Json ZoneOfFileJson(const ZoneOfFile& zone) { return {{"zone", zone.zone.value()}, {"bytes", zone.bytes}}; }

std::string_view TypeName(InodeType type) {
  switch (type) {
    case InodeType::kDirectory:
      return "directory";
    case InodeType::kSymlink:
      return "symlink";
    case InodeType::kRegular:
      break;
  }
  return "file";
}

Json AttributesJson(const FileAttributes& attributes, uint64_t allocated) {
  const bool regular = attributes.type == InodeType::kRegular;
  return {{"inode", attributes.inode},
          {"type", TypeName(attributes.type)},
          {"kind", regular ? Json(FileKindName(attributes.kind)) : Json()},
          {"lifetime", LifetimeName(attributes.lifetime)},
          {"level", attributes.level == DataClass::kNoLevel ? Json() : Json(int{attributes.level})},
          {"size", attributes.size},
          {"allocated", allocated},
          {"modified", attributes.modified_s},
          {"modified_ns", attributes.modified.ns},
          {"changed", attributes.changed.s},
          {"changed_ns", attributes.changed.ns},
          {"mode", attributes.mode},
          {"user", attributes.user},
          {"group", attributes.group},
          {"links", attributes.links}};
}

Json ExtentJson(const FileExtent& extent, const DeviceGeometry& geometry) {
  return {{"file_offset", extent.file_offset},
          {"device_offset", extent.is_hole() ? Json() : Json(extent.device_offset.value())},
          {"zone", extent.is_hole() ? Json() : Json(geometry.ZoneOf(extent.device_offset).value())},
          {"length", extent.length}};
}

std::string FormatTime(uint64_t seconds_since_1970) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(seconds_since_1970)));
}

std::string FormatShare(uint64_t part, uint64_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace isozone::cli
