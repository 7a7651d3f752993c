// What is said where the system gives this process no further thread or process. It is no error of the device, and the
// device is not in use by another: kIoError.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "base/status.h"

namespace isozone {

// `what` was not done: "cannot start a thread".
inline Status NoThread(std::string_view what, std::error_code error) {
  return Status::IoError(std::string(what)
                             .append(": ")
                             .append(error.message())
                             .append("; allow its user more threads (ulimit -u), its container more processes, or this "
                                     "process more memory (ulimit -v)"));
}

}  // namespace isozone
