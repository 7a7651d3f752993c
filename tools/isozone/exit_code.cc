#include "isozone/exit_code.h"

#include <array>
#include <system_error>

#include "base/no_thread.h"

namespace isozone::cli {

std::span<const ExitCodeEntry> ExitCodes() {
  static constexpr std::array<ExitCodeEntry, 11> kEntries = {{
      {ExitCode::kOk, "done"},
      {ExitCode::kUsage, "wrong command, option or argument"},
      {ExitCode::kNotFound, "no such image, file or directory"},
      {ExitCode::kUnusable, "the device cannot be used: not formatted, not an image, another version, too small"},
      {ExitCode::kBusy, "the device is in use by another process"},
      {ExitCode::kCorruption, "corruption found"},
      {ExitCode::kNoSpace, "no space"},
      {ExitCode::kIoError, "an I/O error of the device or the operating system"},
      {ExitCode::kPermissionDenied, "permission denied"},
      {ExitCode::kRefused, "refused to protect data: formatted already, exists, not empty, a directory"},
      {ExitCode::kReadOnly, "the file system or device is read-only"},
  }};
  return kEntries;
}

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return ExitCode::kOk;
    case StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    case StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case StatusCode::kNotSupported:
      return ExitCode::kUnusable;
    case StatusCode::kBusy:
      return ExitCode::kBusy;
    case StatusCode::kCorruption:
      return ExitCode::kCorruption;
    case StatusCode::kNoSpace:
      return ExitCode::kNoSpace;
    case StatusCode::kIoError:
    case StatusCode::kAborted:
      return ExitCode::kIoError;
    case StatusCode::kPermissionDenied:
      return ExitCode::kPermissionDenied;
    case StatusCode::kAlreadyExists:
    case StatusCode::kNotDirectory:
    case StatusCode::kIsDirectory:
    case StatusCode::kNotEmpty:
      return ExitCode::kRefused;
    case StatusCode::kReadOnly:
      return ExitCode::kReadOnly;
  }
  return ExitCode::kIoError;
}

Status StatusOf(const std::exception& error) {
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  const bool no_thread = of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
  return no_thread ? NoThread("cannot start a thread", of_system->code()) : Status::IoError(error.what());
}

}  // namespace isozone::cli
