// The error for a system that gives this process no further thread or process. It is kIoError: the device has not
// failed, and is not in use by another process.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "base/status.h"

namespace isozone {

// Returns the error; `what` says what was not done: "cannot start a thread".
inline Status NoThread(std::string_view what, std::error_code error) {
  return Status::IoError(std::string(what)
                             .append(": ")
                             .append(error.message())
                             .append("; allow its user more threads (ulimit -u), its container more processes, or this "
                                     "process more memory (ulimit -v)"));
}

}  // namespace isozone
