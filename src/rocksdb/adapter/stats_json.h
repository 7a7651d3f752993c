// The counters of a file system as JSON, for the statistics file (stats_file.h) and GetStats(). Units are in the names.
// <isozone/isozone.h> describes the content.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "store/file_system.h"

namespace isozone {

// What is counted alone.
nlohmann::ordered_json StatsJson(const FileSystemStats& stats);
std::string StatsJson(const FileSystem& fs);

}  // namespace isozone
