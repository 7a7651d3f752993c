#include "isozone/serve/found_files.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "isozone/database/key_ranges.h"
#include "isozone/output/report.h"

namespace isozone::cli {
namespace {

// Some files, by inode.
struct FoundFiles {
  std::map<uint64_t, DirectoryEntry> files;  // with their paths as names
  bool more = false;                         // those of higher inodes are left out
};

// Goes through the directories: names and attributes are in memory. FileSystemState::VisitFiles also gives extents, for
// which it reads each log from the device.
Result<FoundFiles> Find(FileSystem& file_system, const std::string& text, size_t most) {
  FoundFiles found;
  std::vector<std::string> directories = {"/"};
  while (!directories.empty()) {
    const std::string directory = std::move(directories.back());
    directories.pop_back();
    auto entries = file_system.List(directory);
    if (entries.status().Is(StatusCode::kNotFound) && directory != "/") continue;  // it has gone meanwhile
    if (!entries.ok()) return entries.status();
    for (DirectoryEntry& entry : *entries) {
      entry.name = (directory == "/" ? directory : directory + "/") + entry.name;
      if (entry.attributes.is_directory) {
        directories.push_back(std::move(entry.name));
      } else if ((entry.name.find(text) != std::string::npos ||
                  TextOfBytes(entry.name).find(text) != std::string::npos)) {
        found.files.try_emplace(entry.attributes.inode, std::move(entry));  // its first name, if it has many
      }
      if (found.files.size() <= most) continue;
      found.files.erase(std::prev(found.files.end()));
      found.more = true;
    }
  }
  return found;
}

// A file may go meanwhile: then it takes nothing.
Json FoundFileJson(const DirectoryEntry& file, const FileSystemState& state, KeyRanges* keys) {
  const auto allocated = state.AllocatedBytes(file.name);
  Json json = AttributesJson(file.attributes, allocated.ok() ? *allocated : 0);
  json["path"] = file.name;
  json["table"] = keys == nullptr ? Json() : keys->TableJson(file.name);
  json["zones"] = Json::array();
  if (const auto zones = state.ZonesOf(file.name); zones.ok()) {
    for (const ZoneOfFile& zone : *zones) json["zones"].push_back(ZoneOfFileJson(zone));
  }
  return json;
}

// Null if the keys are not to be told.
std::unique_ptr<KeyRanges> KeysOf(FileSystem& file_system, ShowKeys keys) {
  return keys == ShowKeys::kYes ? std::make_unique<KeyRanges>(file_system) : nullptr;
}

}  // namespace

Result<Json> FindFiles(FileSystem& file_system, const std::string& text, size_t most, ShowKeys keys) {
  ISOZONE_ASSIGN_OR_RETURN(const FoundFiles found, Find(file_system, text, most));
  Json document = {{"files", Json::array()}, {"more", found.more}};
  const auto ranges = KeysOf(file_system, keys);
  for (const auto& [inode, file] : found.files) {
    document["files"].push_back(FoundFileJson(file, file_system.state(), ranges.get()));
  }
  return document;
}

Result<Json> FilesInZone(FileSystem& file_system, uint32_t zone, ShowKeys keys) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FileInZone> files, file_system.state().FilesIn(ZoneId(zone)));
  Json document = {{"zone", ZoneJson(file_system.state().Zones()[zone])}, {"files", Json::array()}};
  const auto ranges = KeysOf(file_system, keys);
  for (const FileInZone& file : files) {
    Json json = FileInZoneJson(file);
    json["table"] = ranges == nullptr ? Json() : ranges->TableJson(file.paths);
    document["files"].push_back(std::move(json));
  }
  return document;
}

}  // namespace isozone::cli
