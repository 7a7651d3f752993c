#include "base/status.h"

#include <cerrno>
#include <system_error>

namespace isozone {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kInvalidArgument:
      return "Invalid argument";
    case StatusCode::kNotFound:
      return "Not found";
    case StatusCode::kAlreadyExists:
      return "Already exists";
    case StatusCode::kPermissionDenied:
      return "Permission denied";
    case StatusCode::kBusy:
      return "Busy";
    case StatusCode::kNoSpace:
      return "No space";
    case StatusCode::kReadOnly:
      return "Read-only";
    case StatusCode::kCorruption:
      return "Corruption";
    case StatusCode::kIoError:
      return "I/O error";
    case StatusCode::kNotSupported:
      return "Not supported";
    case StatusCode::kNotDirectory:
      return "Not a directory";
    case StatusCode::kIsDirectory:
      return "Is a directory";
    case StatusCode::kNotEmpty:
      return "Not empty";
    case StatusCode::kAborted:
      return "Aborted";
  }
  return "Unknown";
}

namespace {

// What to do where the system refuses more of what this process has a limit of.
std::string_view AdviceOn(int error_number) {
  switch (error_number) {
    case EMFILE:
      return "; allow this process more open files (ulimit -n)";
    case ENFILE:
      return "; allow this machine more open files (fs.file-max)";
    case ENOMEM:
      return "; give this process more memory, or a higher limit of it (ulimit -v)";
    default:
      return "";
  }
}

}  // namespace

Status::Status(StatusCode code, std::string message) : code_(code) {
  assert(code != StatusCode::kOk);
  message_ = std::make_shared<const std::string>(std::move(message));
}

Status Status::FromErrno(int error_number, std::string_view what) {
  std::string text(what);
  text += ": ";
  text += std::generic_category().message(error_number);
  text += AdviceOn(error_number);
  switch (error_number) {
    case ENOENT:
      return NotFound(std::move(text));
    case EACCES:
    case EPERM:
    case EROFS:
      return PermissionDenied(std::move(text));
    case ENOSPC:
    case EDQUOT:
      return NoSpace(std::move(text));
    case EBUSY:
    case EAGAIN:
      return Busy(std::move(text));
    case EEXIST:
      return AlreadyExists(std::move(text));
    case EISDIR:
      return IsDirectory(std::move(text));
    case ENOTDIR:
      return NotDirectory(std::move(text));
    default:
      return IoError(std::move(text));
  }
}

std::string Status::ToString() const {
  std::string text(StatusCodeName(code_));
  if (!message().empty()) {
    text += ": ";
    text += message();
  }
  return text;
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  std::string text(context);
  text += ": ";
  text += message();
  return {code_, std::move(text)};
}

}  // namespace isozone
