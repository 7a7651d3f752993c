#include "rocksdb/adapter/status_mapping.h"

#include <string>

namespace isozone {

using rocksdb::IOStatus;

namespace {

std::string TextWith(const Status& status, std::string_view path) {
  std::string text(status.message());
  if (!path.empty() && text.find(path) == std::string::npos) text.insert(0, std::string(path) + ": ");
  return text;
}

IOStatus IoErrorOf(const Status& status, const std::string& text) {
  return IOStatus::IOError(std::string(StatusCodeName(status.code())), text);
}

}  // namespace

IOStatus ToIoStatusOfName(const Status& status, std::string_view path) {
  const bool name_is_wrong = status.Is(StatusCode::kInvalidArgument) || status.Is(StatusCode::kBusy);
  return name_is_wrong ? IoErrorOf(status, TextWith(status, path)) : ToIoStatus(status, path);
}

IOStatus ToIoStatus(const Status& status, std::string_view path) {
  if (status.ok()) return IOStatus::OK();
  const std::string text = TextWith(status, path);
  switch (status.code()) {
    case StatusCode::kNotFound:
      return IOStatus::PathNotFound(text);
    case StatusCode::kInvalidArgument:
      return IOStatus::InvalidArgument(text);
    case StatusCode::kNotSupported:
      return IOStatus::NotSupported(text);
    case StatusCode::kAborted:
      return IOStatus::Aborted(text);
    case StatusCode::kBusy:
      return IOStatus::Busy(text);
    case StatusCode::kNoSpace: {
      IOStatus no_space = IOStatus::NoSpace(text);
      no_space.SetRetryable(true);
      return no_space;
    }
    case StatusCode::kCorruption: {
      IOStatus corruption = IOStatus::Corruption(text);
      corruption.SetDataLoss(true);
      return corruption;
    }
    default:
      return IoErrorOf(status, text);
  }
}

}  // namespace isozone
