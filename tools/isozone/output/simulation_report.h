// What a simulation has found, for people and as JSON.
#pragma once

#include "isozone/output/console.h"
#include "simulator/sim_options.h"
#include "simulator/sim_report.h"

namespace isozone::cli {

void PrintSimulation(const SimOptions& options, const SimReport& report, Console& console);
Json SimulationJson(const SimOptions& options, const SimReport& report);

}  // namespace isozone::cli
