// The statistics page of a mount as JSON: docs/schemas/stats-page.schema.json. Counters have the names that they have
// in the statistics file; units are in the names.
#pragma once

#include <string>
#include <string_view>

#include "insight/stats/statistics.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// Includes every zone if `zones`, and otherwise null in their place.
Json StatisticsJson(const Statistics& statistics, bool zones);

// Returns "mounted", "not-mounted" or "died".
std::string_view LifeName(const Statistics& statistics);

}  // namespace isozone::cli
