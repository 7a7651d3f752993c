// The statistics page of a mount as JSON: docs/schemas/stats-page.schema.json. Counters have the names that they have
// in the statistics file; units are in the names.
#pragma once

#include <string>
#include <string_view>

#include "insight/stats/statistics.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// `zones`: with every zone; otherwise null stands for them.
Json StatisticsJson(const Statistics& statistics, bool zones);

// "mounted", "not-mounted", "died".
std::string_view LifeName(const Statistics& statistics);

}  // namespace isozone::cli
