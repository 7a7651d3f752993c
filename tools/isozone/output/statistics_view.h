// The statistics of a mount for a person: the lines that `isozone stats` prints, and that `isozone top` draws again and
// again.
#pragma once

#include <string>
#include <vector>

#include "insight/stats/statistics.h"

namespace isozone::cli {

struct ViewLine {
  std::string text;    // without colour or control characters
  size_t heading = 0;  // characters at the beginning that are a heading
};

// Returns the lines that show `now`. Throughput and latencies are those since `before`, an earlier look at the same
// mount; if it is null, throughput is that of the last seconds, and latencies are those since the mount. `width` is in
// columns; lines may be longer.
std::vector<ViewLine> StatisticsView(const Statistics& now, const Statistics* before, size_t width);

}  // namespace isozone::cli
