// Where the statistics of a device come from: the page of the process that has it mounted, or, if there is none, the
// device.
#pragma once

#include <string>

#include "base/status.h"
#include "insight/stats/page_reader.h"
#include "insight/stats/statistics.h"

namespace isozone::cli {

// One look at a device.
struct Look {
  Statistics statistics;
  std::string note;  // one line for a person, if no process has the device mounted; else empty
};

// Looks at the device of `uri`, as commands take it. The page of a process that died is read and then removed, so that
// the next look finds what is on the device. The process that publishes is not touched. kNotSupported if the page is of
// another version; otherwise the errors of StatisticsReader::Read and of MountByUri.
Result<Look> LookAt(const std::string& uri);

// Returns whether an error of StatisticsReader::Open allows to show what is on the device: nobody publishes, or what
// lies in the page's place cannot be read, is no page, or is of a user who could not have mounted. Anybody may put such
// a file there, and it must not hide the device. A page of another version is of somebody who could have mounted.
bool HidesNothing(const Status& no_page);

// The two halves of LookAt: the page that `reader` has open, which is removed if its process has ended; and what is on
// the device, by a read-only mount, whoever publishes. `no_page` says why there is no page, for the note.
Result<Look> LookAtPage(const StatisticsReader& reader);
Result<Look> LookAtRest(const std::string& uri, const Status& no_page);

}  // namespace isozone::cli
