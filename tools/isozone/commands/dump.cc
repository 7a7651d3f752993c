#include <memory>
#include <string>
#include <utility>

#include "isozone/command.h"
#include "isozone/output/report.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

Result<Json> FilesJson(const FileSystem& file_system) {
  Json files = Json::array();
  ISOZONE_RETURN_IF_ERROR(file_system.state().VisitFiles([&](const FileDetails& details) {
    Json file = {{"paths", details.paths}};
    file.update(AttributesJson(details.attributes, details.allocated));
    file["extents"] = Json::array();
    for (const FileExtent extent : details.extents) {
      file["extents"].push_back(ExtentJson(extent, file_system.state().device().geometry()));
    }
    files.push_back(std::move(file));
  }));
  return files;
}

Status Dump(const std::string& device, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(device, OpenMode::kReadOnly));
  ISOZONE_ASSIGN_OR_RETURN(Json files, FilesJson(*file_system));
  Json zones = Json::array();
  for (const ZoneView& zone : file_system->state().Zones()) zones.push_back(ZoneJson(zone));
  console.PrintJson({{"device",
                      {{"name", file_system->state().device().name()},
                       {"geometry", GeometryJson(file_system->state().device().geometry())},
                       {"counters", CountersJson(file_system->state().device().counters())}}},
                     {"label", file_system->state().label()},
                     {"uuid", file_system->state().uuid()},
                     {"space", SpaceJson(file_system->state().Space())},
                     {"files", std::move(files)},
                     {"zones", std::move(zones)},
                     {"zone_groups", ZoneGroupsJson(file_system->groups().Get().get())}});
  return Status::Ok();
}

Action DefineDump(CLI::App& app) {
  auto device = std::make_shared<std::string>();
  AddDeviceArgument(app, *device);
  return [device](Console& console) { return Dump(*device, console); };
}

}  // namespace

extern const Command kDumpCommand = {"dump", "Write all metadata as JSON",
                                     "  isozone dump emu:/data/ssd.img | jq '.files[] | select(.size > 1e6) | .paths'",
                                     DefineDump};

}  // namespace isozone::cli
