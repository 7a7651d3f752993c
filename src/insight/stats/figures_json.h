// Figures as JSON, wherever they are written: statistics_json.h, `isozone info`.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "insight/stats/figures.h"

namespace isozone {

// Adds what FigureTable lists to `document`, each figure at its key.
void PutFigures(const Figures& figures, nlohmann::ordered_json& document);
// The object `section` of what PutFigures adds.
nlohmann::ordered_json SectionJson(const Figures& figures, std::string_view section);
nlohmann::ordered_json ClassJson(const PageClass& figures);

}  // namespace isozone
