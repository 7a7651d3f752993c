// Exit codes that scripts may rely on. --help, the test of the manual page and main() all use this table.
#pragma once

#include <exception>
#include <span>
#include <string_view>

#include "base/status.h"

namespace isozone::cli {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 1,
  kNotFound = 2,
  kUnusable = 3,
  kBusy = 4,
  kCorruption = 5,
  kNoSpace = 6,
  kIoError = 7,
  kPermissionDenied = 8,
  kRefused = 9,
  kReadOnly = 10,
};

struct ExitCodeEntry {
  ExitCode code;
  std::string_view meaning;
};
std::span<const ExitCodeEntry> ExitCodes();

ExitCode ExitCodeOf(const Status& status);

// Returns the status of a command in which something was thrown: in most cases because the system has no more threads
// for it.
Status StatusOf(const std::exception& error);

}  // namespace isozone::cli
