// Status and Result: how every layer reports failure.
//
// A Status is a code and one line for a person: what is wrong, where, and, if the reader can do something, what to do.
// Nothing in Isozone throws across a function boundary; exceptions of libraries are turned into a Status where
// they are called. Dropping a Status does not compile ([[nodiscard]]).
//
// Thread safety: values; const access from many threads is safe.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace isozone {

enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument,   // an argument is invalid; calling again with the same arguments fails again
  kNotFound,          // the file, image or option does not exist
  kAlreadyExists,     // the object exists and must not
  kPermissionDenied,  // the operating system refused
  kBusy,              // in use by another process or handle
  kNoSpace,           // no space is left, even after all dead zones are reset
  kReadOnly,          // opened read-only, or latched read-only after a metadata error
  kCorruption,        // bytes read are not what was written
  kIoError,           // the device or the operating system failed a request
  kNotSupported,      // the request is valid, but this object does not support it
  kNotDirectory,
  kIsDirectory,
  kNotEmpty,
  kAborted,  // cancelled by the caller
};

// The name of a code as users see it: "No space".
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message);

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) { return {StatusCode::kInvalidArgument, std::move(m)}; }
  static Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
  static Status AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
  static Status PermissionDenied(std::string m) { return {StatusCode::kPermissionDenied, std::move(m)}; }
  static Status Busy(std::string m) { return {StatusCode::kBusy, std::move(m)}; }
  static Status NoSpace(std::string m) { return {StatusCode::kNoSpace, std::move(m)}; }
  static Status ReadOnly(std::string m) { return {StatusCode::kReadOnly, std::move(m)}; }
  static Status Corruption(std::string m) { return {StatusCode::kCorruption, std::move(m)}; }
  static Status IoError(std::string m) { return {StatusCode::kIoError, std::move(m)}; }
  static Status NotSupported(std::string m) { return {StatusCode::kNotSupported, std::move(m)}; }
  static Status NotDirectory(std::string m) { return {StatusCode::kNotDirectory, std::move(m)}; }
  static Status IsDirectory(std::string m) { return {StatusCode::kIsDirectory, std::move(m)}; }
  static Status NotEmpty(std::string m) { return {StatusCode::kNotEmpty, std::move(m)}; }
  static Status Aborted(std::string m) { return {StatusCode::kAborted, std::move(m)}; }

  // Makes a status of errno after a failed call: "cannot open /x: Permission denied". ENOENT, EACCES, EPERM, ENOSPC,
  // EBUSY, EAGAIN and EEXIST become the code of that meaning; every other error becomes kIoError.
  static Status FromErrno(int error_number, std::string_view what);

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // Returns the message, which is empty for OK.
  std::string_view message() const { return message_ ? std::string_view(*message_) : std::string_view(); }
  // Returns the status as text: "No space: the device has no empty zone"; "OK".
  std::string ToString() const;

  // Returns the status with `context` and ": " before its message. OK stays OK.
  Status WithContext(std::string_view context) const;

  bool Is(StatusCode code) const { return code_ == code; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::shared_ptr<const std::string> message_;
};

// A value, or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<1>, std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : v_(std::in_place_index<0>, std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!std::get<0>(v_).ok());
  }

  bool ok() const { return v_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(v_); }

  T& value() & {
    assert(ok());
    return std::get<1>(v_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<1>(v_);
  }
  T&& value() && {
    assert(ok());
    return std::get<1>(std::move(v_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<Status, T> v_;
};

#define ISOZONE_CONCAT_INNER(a, b) a##b
#define ISOZONE_CONCAT(a, b) ISOZONE_CONCAT_INNER(a, b)

// Returns from the calling function if `expr` (a Status) is not OK.
#define ISOZONE_RETURN_IF_ERROR(expr)                  \
  do {                                                 \
    ::isozone::Status isozone_status_ = (expr);        \
    if (!isozone_status_.ok()) return isozone_status_; \
  } while (false)

// ISOZONE_ASSIGN_OR_RETURN(auto x, F()): assigns the value, or returns the error from the calling function.
#define ISOZONE_ASSIGN_OR_RETURN(lhs, expr) \
  ISOZONE_ASSIGN_OR_RETURN_IMPL(ISOZONE_CONCAT(isozone_result_, __LINE__), lhs, expr)
#define ISOZONE_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = std::move(tmp).value()

}  // namespace isozone
