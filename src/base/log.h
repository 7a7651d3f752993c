// What the library has to say beside the statuses that it returns: a metadata error that stops all writing, a zone that
// failed, damage found while mounting.
#pragma once

#include <spdlog/logger.h>

namespace isozone {

// The spdlog logger named `isozone`: the application's if it registered one of that name before the first message, and
// otherwise one that writes to standard error (never to standard output, which belongs to the program). Thread-safe; the
// logger lives as long as the process.
spdlog::logger& Log();

}  // namespace isozone
