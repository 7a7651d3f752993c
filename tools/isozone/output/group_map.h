// A map of the independent zone groups, with a cell for each zone: the text is its group, the colour is the group's
// channel. It is drawn for a terminal and as an SVG file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/izg/zone_groups.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// Returns "32 groups on 8 channels; a zone alone is programmed at 94 MiB/s", or another sentence if no zone slows
// another.
std::string GroupSummary(const ZoneGroups& groups);

// Returns the lowest confidence, in percent, of a zone whose group is known; nothing if there is none.
std::optional<int> LeastConfidence(const ZoneGroups& groups);
// "the group of every zone is at least 99 % sure", or another sentence if no zone is in a group.
std::string ConfidenceText(const ZoneGroups& groups);

void PrintGroupMap(const ZoneGroups& groups, Console& console);

std::string GroupMapSvg(const ZoneGroups& groups, std::string_view title, std::string_view subtitle);

}  // namespace isozone::cli
