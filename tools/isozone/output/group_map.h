// The independent zone groups as a picture: a cell a zone, its group as the text, its group's channel as the colour.
// Drawn for a terminal and as an SVG file.
#pragma once

#include <string>
#include <string_view>

#include "isozone/output/console.h"
#include "izg/zone_groups.h"

namespace isozone::cli {

// "32 groups on 8 channels; a zone alone is programmed at 94 MiB/s", or what is said instead where nothing interferes.
std::string GroupSummary(const ZoneGroups& groups);

void PrintGroupMap(const ZoneGroups& groups, Console& console);

std::string GroupMapSvg(const ZoneGroups& groups, std::string_view title, std::string_view subtitle);

}  // namespace isozone::cli
