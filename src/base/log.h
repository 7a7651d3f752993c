// The log of the library, for events that no returned status reports: a metadata error that stops all writing, a zone
// that failed, damage found while mounting.
#pragma once

#include <spdlog/logger.h>

namespace isozone {

// Returns the spdlog logger named `isozone`. If the application registered a logger of that name before the first
// message, it is that one; otherwise it writes to standard error, never to standard output, which belongs to the
// program. Thread-safe; the logger lives as long as the process.
spdlog::logger& Log();

}  // namespace isozone
