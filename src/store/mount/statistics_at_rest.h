// The statistics of a device that nobody has mounted, in the form of a statistics page: what lies on it. For tools that
// show both alike.
#pragma once

#include "base/clock.h"
#include "insight/stats/statistics.h"
#include "store/file_system.h"

namespace isozone {

// Returns the statistics of `fs`, which is mounted read-only. Whatever is counted from the mount on is 0, and so are
// rates, queues and waits; `life` is kUnmounted.
Statistics StatisticsAtRest(const FileSystem& fs, const Clock& clock);

}  // namespace isozone
