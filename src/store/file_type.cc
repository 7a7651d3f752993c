#include "store/file_type.h"

#include <algorithm>

namespace isozone {
namespace {

// NNN.`extension`, as RocksDB numbers its files.
bool IsNumbered(std::string_view name, std::string_view extension) {
  if (!name.ends_with(extension)) return false;
  name.remove_suffix(extension.size());
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

FileType FileTypeOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (IsNumbered(name, ".log")) return FileType::kWal;
  if (IsNumbered(name, ".sst") || IsNumbered(name, ".ldb") || IsNumbered(name, ".blob")) return FileType::kTable;
  if (name.starts_with("MANIFEST-")) return FileType::kManifest;
  if (name == "CURRENT") return FileType::kCurrent;
  const bool small = name == "IDENTITY" || name == "LOCK" || name.starts_with("LOG") || name.starts_with("OPTIONS-") ||
                     IsNumbered(name, ".dbtmp");
  return small ? FileType::kSmall : FileType::kOther;
}

bool IsInfoLog(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "LOG" || name.starts_with("LOG.old.") || name.ends_with("_LOG");
}

FileKind FileKindOf(FileType type) {
  switch (type) {
    case FileType::kWal:
    case FileType::kManifest:
      return FileKind::kLog;
    case FileType::kCurrent:
    case FileType::kSmall:
      return FileKind::kSmall;
    case FileType::kTable:
    case FileType::kOther:
      break;
  }
  return FileKind::kData;
}

Lifetime LifetimeOf(FileType type, Lifetime hint) {
  switch (type) {
    case FileType::kWal:
      return Lifetime::kShort;
    case FileType::kManifest:
      return Lifetime::kLong;
    case FileType::kCurrent:
    case FileType::kSmall:
      return Lifetime::kNone;
    case FileType::kTable:
    case FileType::kOther:
      break;
  }
  // Isozone uses "none" for small files. To programs, "none" means the same as "not set".
  return hint == Lifetime::kNone ? Lifetime::kNotSet : hint;
}

}  // namespace isozone
