#include "rocksdb/status_mapping.h"

#include <string>

namespace isozone {

using rocksdb::IOStatus;

IOStatus ToIoStatus(const Status& status, std::string_view path) {
  if (status.ok()) return IOStatus::OK();
  std::string text(status.message());
  if (!path.empty() && text.find(path) == std::string::npos) text.insert(0, std::string(path) + ": ");
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
      return IOStatus::IOError(std::string(StatusCodeName(status.code())), text);
  }
}

}  // namespace isozone
