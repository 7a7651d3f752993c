// The statistics of a mount for a person: the lines that `isozone stats` prints, and that `isozone top` draws again and
// again.
#pragma once

#include <string>
#include <vector>

#include "insight/stats/statistics.h"

namespace isozone::cli {

struct ViewLine {
  std::string text;    // without colour or control characters
  size_t heading = 0;  // so many characters from the beginning are a heading
};

// What `now` shows. Throughput and latencies are those since `before`, an earlier look at the same mount; if it is
// null, throughput is that of the last seconds, and latencies are those since the mount. `width`: columns; lines may be
// longer.
std::vector<ViewLine> StatisticsView(const Statistics& now, const Statistics* before, size_t width);

}  // namespace isozone::cli
