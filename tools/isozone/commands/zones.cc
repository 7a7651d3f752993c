#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "isozone/command.h"
#include "isozone/output/group_map.h"
#include "isozone/output/report.h"
#include "isozone/output/table.h"
#include "isozone/output/zone_map.h"
#include "isozone/serve/found_files.h"
#include "isozone/serve/still_map.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

struct ZonesArguments {
  std::string device;
  std::string svg_path;
  std::string html_path;
  std::optional<uint32_t> zone;
  bool groups = false;
  bool table = false;
  bool all = false;
  bool json = false;
};

void PrintTable(const std::vector<ZoneView>& zones, bool all, Console& console) {
  using Align = Table::Align;
  Table table({{"ZONE", Align::kRight},
               {"STATE"},
               {"USE"},
               {"LIFETIME"},
               {"HEAT"},
               {"WRITTEN", Align::kRight},
               {"LIVE", Align::kRight},
               {"CAPACITY", Align::kRight}});
  for (const ZoneView& zone : zones) {
    if (!all && CategoryOf(zone) == ZoneCategory::kFree) continue;
    table.AddRow({std::to_string(zone.device.zone.value()), std::string(ZoneStateName(zone.device.state)),
                  std::string(ZoneUseName(zone.use)), std::string(LifetimeName(zone.lifetime)),
                  std::string(ZoneHeatName(zone.heat)), FormatSize(zone.device.write_pointer), FormatSize(zone.live),
                  FormatSize(zone.device.capacity)});
  }
  table.Print(console);
}

std::string Summary(const FileSystem& file_system, const std::vector<ZoneView>& zones) {
  const SpaceInfo space = file_system.state().Space();
  const ZoneTotals totals = TotalsOf(zones);
  return fmt::format("{} of {} zones in use, {} active; {} live, {} dead, {} free of {}",
                     zones.size() - space.empty_zones, zones.size(), space.active_zones, FormatSize(totals.live),
                     FormatSize(space.dead), FormatSize(space.free), FormatSize(totals.capacity));
}

std::string Title(const FileSystem& file_system) {
  return file_system.state().label().empty() ? "Isozone zone map" : "Isozone zone map: " + file_system.state().label();
}

// "L2", and "L2 of FAMILY" where that is not the default one.
std::string LevelText(const Json& table) {
  const auto family = table["column_family"].get<std::string>();
  const std::string level = fmt::format("L{}", table["level"].get<uint32_t>());
  return family == "default" ? level : fmt::format("{} of {}", level, family);
}

void PrintFiles(const ZoneView& zone, const Json& files, Console& console) {
  console.Print("{}\n", console.Bold(fmt::format("Zone {}", zone.device.zone.value())));
  console.Print("{}, {}; {} of {} written, {} live\n", ZoneStateName(zone.device.state), ZoneUseName(zone.use),
                FormatSize(zone.device.write_pointer), FormatSize(zone.device.capacity), FormatSize(zone.live));
  if (files.empty()) return;
  const bool any_keys = std::ranges::any_of(files, [](const Json& file) { return !file["table"].is_null(); });
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"BYTES", Align::kRight}, {"KIND"}};
  if (any_keys) columns.insert(columns.end(), {{"LEVEL"}, {"SMALLEST KEY"}, {"LARGEST KEY"}});
  columns.push_back({"NAME"});
  Table table(std::move(columns));
  for (const Json& file : files) {
    std::vector<std::string> row = {std::to_string(file["bytes"].get<uint64_t>()), file["kind"].get<std::string>()};
    if (const Json& of = file["table"]; !of.is_null()) {
      row.insert(row.end(),
                 {LevelText(of), of["smallest_key"].get<std::string>(), of["largest_key"].get<std::string>()});
    } else if (any_keys) {
      row.resize(row.size() + 3);
    }
    row.push_back(file["paths"].empty() ? "" : Printable(file["paths"][0].get<std::string>()));
    table.AddRow(std::move(row));
  }
  table.Print(console);
}

// One zone, and the files in it.
Status OneZone(FileSystem& file_system, const ZonesArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const Json document, FilesInZone(file_system, *arguments.zone, ShowKeys::kYes));
  if (arguments.json) {
    console.PrintJson(document);
  } else {
    PrintFiles(file_system.state().Zones()[*arguments.zone], document["files"], console);
  }
  return Status::Ok();
}

// The zone groups that were measured last.
Status Groups(const FileSystem& file_system, const ZonesArguments& arguments, Console& console) {
  const std::string name = file_system.state().device().name();
  const std::shared_ptr<const ZoneGroups> groups = file_system.groups().Get();
  if (groups == nullptr) {
    return Status::NotFound(
        fmt::format("the zone groups of {} were never measured; use isozone izg identify {}", name, arguments.device));
  }
  if (!arguments.svg_path.empty()) {
    const std::string subtitle = fmt::format("{}: {}", name, GroupSummary(*groups));
    ISOZONE_RETURN_IF_ERROR(
        WriteLocalFile(arguments.svg_path, GroupMapSvg(*groups, "Independent zone groups", subtitle)));
  }
  if (arguments.json) {
    Json document = {{"device", name}};
    document.update(ZoneGroupsJson(groups.get()));
    console.PrintJson(document);
    return Status::Ok();
  }
  console.Print("{}: {}\n{}\n\n", console.Bold(Printable(name)), GroupSummary(*groups), ConfidenceText(*groups));
  PrintGroupMap(*groups, console);
  return Status::Ok();
}

Status Zones(const ZonesArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  if (arguments.zone) return OneZone(*file_system, arguments, console);
  if (arguments.groups) return Groups(*file_system, arguments, console);
  const std::vector<ZoneView> zones = file_system->state().Zones();
  const std::string summary = Summary(*file_system, zones);
  if (!arguments.svg_path.empty()) {
    ISOZONE_RETURN_IF_ERROR(WriteLocalFile(arguments.svg_path, ZoneMapSvg(zones, {Title(*file_system), summary})));
  }
  if (!arguments.html_path.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(const std::string page, StillMapHtml(*file_system));
    ISOZONE_RETURN_IF_ERROR(WriteLocalFile(arguments.html_path, page));
  }
  if (arguments.json) {
    Json document = Json::array();
    for (const ZoneView& zone : zones) document.push_back(ZoneJson(zone));
    console.PrintJson(document);
  } else if (arguments.table) {
    PrintTable(zones, arguments.all, console);
  } else {
    console.Print("{}\n{}\n\n", console.Bold(Printable(file_system->state().device().name())), summary);
    PrintZoneMap(zones, console);
  }
  return Status::Ok();
}

Action DefineZones(CLI::App& app) {
  auto arguments = std::make_shared<ZonesArguments>();
  AddDeviceArgument(app, arguments->device);
  CLI::Option* svg = app.add_option("--svg", arguments->svg_path, "Draw the map into this file, too");
  svg->option_text("FILE");
  CLI::Option* html = app.add_option("--html", arguments->html_path,
                                     "Write the map into this file for browsers, too, with up to 20,000 files");
  html->option_text("FILE");
  CLI::Option* table = app.add_flag("--table", arguments->table, "One line for each zone that is not free");
  app.add_flag("--all", arguments->all, "With --table: free zones, too")->needs(table);
  CLI::Option* groups = app.add_flag("--groups", arguments->groups, "Instead of the map: which zones share hardware");
  groups->excludes(html)->excludes(table);
  CLI::Option* zone = app.add_option("--zone", arguments->zone, "Instead of the map: the files in this zone");
  zone->option_text("N")->excludes(svg)->excludes(html)->excludes(table)->excludes(groups);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Zones(*arguments, console); };
}

}  // namespace

extern const Command kZonesCommand = {"zones", "Draw the map of the zones",
                                      "  isozone zones emu:/data/ssd.img --svg zones.svg\n"
                                      "  isozone zones emu:/data/ssd.img --table\n"
                                      "  isozone zones emu:/data/ssd.img --groups --svg groups.svg\n"
                                      "  isozone zones emu:/data/ssd.img --zone 12",
                                      DefineZones};

}  // namespace isozone::cli
