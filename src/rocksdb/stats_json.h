// The counters of a file system as JSON, for the statistics file and GetStats(). Units are in the names; the schema is
// in rocksdb/isozone.h.
#pragma once

#include <string>

#include "fs/file_system.h"

namespace isozone {

std::string StatsJson(const FileSystem& fs);

// kInvalidArgument where `path`, absolute, cannot be written. Touches nothing.
Status CheckStatsFile(const std::string& path);
// Writes `json` to `path`, what stats_file= says; says on stderr where it cannot.
void WriteStatsFile(const std::string& path, const std::string& json);

}  // namespace isozone
