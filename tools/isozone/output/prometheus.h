// The statistics of mounts in the text format of Prometheus (version 0.0.4): names begin with isozone_, units are
// seconds and bytes, counters end in _total, ratios go from 0 to 1. Devices are told apart by the label `device`. There
// is no series for a zone.
#pragma once

#include <span>
#include <string>

#include "insight/stats/statistics.h"

namespace isozone::cli {

// `unreadable` names devices whose statistics cannot be read now. They have the series device_readable alone.
std::string PrometheusText(std::span<const Statistics> mounts, std::span<const std::string> unreadable = {});

}  // namespace isozone::cli
