#include "fs/file_system.h"

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

double FileSystemStats::WriteAmplification() const {
  if (user_bytes_appended == 0) return 0;
  uint64_t written = journal_bytes;
  for (const ClassStats& c : by_class) written += c.bytes_written;
  return static_cast<double>(written) / static_cast<double>(user_bytes_appended);
}

}  // namespace isozone
