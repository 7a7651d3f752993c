// Statistics as JSON: what `isozone stats --json`, GetStats and stats_file= write (docs/schemas/stats.schema.json).
// Units are in the names.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "insight/stats/statistics.h"

namespace isozone {

// Returns `statistics` as a document: with every zone where `zones` is set, and otherwise with null in their place.
nlohmann::ordered_json StatisticsJson(const Statistics& statistics, bool zones);

// Returns "mounted", "not-mounted" or "died".
std::string_view LifeName(const Statistics& statistics);

}  // namespace isozone
