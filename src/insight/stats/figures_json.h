// Figures as JSON, wherever they are written: statistics_json.h, `isozone info`.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "insight/stats/figures.h"

namespace isozone {

// Adds what FigureTable lists to `document`, each figure at its key.
void PutFigures(const Figures& figures, nlohmann::ordered_json& document);
// The object `section` of what PutFigures adds.
nlohmann::ordered_json SectionJson(const Figures& figures, std::string_view section);
nlohmann::ordered_json ClassJson(const PageClass& figures);

// Returns count, mean, percentiles and maximum of a Histogram::Snapshot or LatencyFigures, which are in ns, in us.
template <typename Latency>
nlohmann::ordered_json LatencyJson(const Latency& latency) {
  const auto us = [](auto ns) { return static_cast<double>(ns) / static_cast<double>(kMicrosecondNs); };
  return {{"count", latency.count},
          {"mean", us(latency.Mean())},
          {"p50", us(latency.Percentile(50))},
          {"p99", us(latency.Percentile(99))},
          {"p99.9", us(latency.Percentile(99.9))},
          {"max", us(latency.max)}};
}

}  // namespace isozone
