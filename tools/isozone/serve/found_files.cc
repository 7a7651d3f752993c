#include "isozone/serve/found_files.h"

#include <algorithm>
#include <vector>

#include "isozone/output/report.h"

namespace isozone::cli {
namespace {

Json FoundFileJson(const FileDetails& file, const FileSystem& files) {
  Json json = AttributesJson(file.attributes, file.allocated);
  json["path"] = file.paths.front();
  json["zones"] = Json::array();
  // It may have gone meanwhile.
  if (const auto zones = files.state().ZonesOf(file.paths.front()); zones.ok()) {
    for (const ZoneOfFile& zone : *zones) json["zones"].push_back(ZoneOfFileJson(zone));
  }
  return json;
}

}  // namespace

Result<Json> FindFiles(const FileSystem& files, const std::string& text, size_t most) {
  std::vector<FileDetails> found;
  bool more = false;
  ISOZONE_RETURN_IF_ERROR(files.state().VisitFiles([&](const FileDetails& file) {
    const auto fits = [&](const std::string& path) { return path.find(text) != std::string::npos; };
    const auto path = std::ranges::find_if(file.paths, fits);
    if (file.attributes.is_directory || path == file.paths.end()) return;
    if (found.size() == most) {
      more = true;
      return;
    }
    found.push_back({{*path}, file.attributes, file.allocated, {}});
  }));
  Json document = {{"files", Json::array()}, {"more", more}};
  for (const FileDetails& file : found) document["files"].push_back(FoundFileJson(file, files));
  return document;
}

}  // namespace isozone::cli
