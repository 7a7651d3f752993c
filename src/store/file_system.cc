#include "store/file_system.h"

namespace isozone {

std::string_view FileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::kData:
      return "data";
    case FileKind::kLog:
      return "log";
    case FileKind::kSmall:
      return "small";
  }
  return "unknown";
}

}  // namespace isozone
