// Where the statistics of a device come from: the page of the process that has it mounted, or, if there is none, the
// device.
#pragma once

#include <string>

#include "base/status.h"
#include "stats/page_reader.h"
#include "stats/statistics.h"

namespace isozone::cli {

// One look at a device.
struct Look {
  Statistics statistics;
  std::string note;  // one line for a person, if this is not a mount that lives; else empty
};

// `uri`: as of commands. The page of a process that died is read and then removed, so that the next look finds what is
// on the device. The process that publishes is not touched. Errors: those of StatisticsReader::Open, but kNotFound, and
// of MountByUri.
Result<Look> LookAt(const std::string& uri);

// The two halves of it: the page that `reader` has open, which is removed if its process has ended; and what is on the
// device, by a read-only mount, whoever publishes.
Result<Look> LookAtPage(const StatisticsReader& reader);
Result<Look> LookAtRest(const std::string& uri);

}  // namespace isozone::cli
