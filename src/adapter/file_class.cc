#include "adapter/file_class.h"

#include <algorithm>

namespace isozone {
namespace {

using rocksdb::Env;

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

Lifetime LifetimeOf(FileType type, Env::WriteLifeTimeHint hint) {
  static_assert(static_cast<int>(Lifetime::kExtreme) == Env::WLTH_EXTREME);
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
  // Isozone uses "none" for small files. To RocksDB, "none" means the same as "not set".
  return hint == Env::WLTH_NONE ? Lifetime::kNotSet : static_cast<Lifetime>(hint);
}

IoClass WriteClassOf(FileType type, const Intent& intent) {
  if (type == FileType::kWal) return IoClass::kWal;
  if (type == FileType::kManifest || type == FileType::kCurrent) return IoClass::kMetadata;
  if (type != FileType::kTable) return IoClass::kOther;
  if (intent.activity == Activity::kFlush) return IoClass::kFlush;
  if (intent.activity == Activity::kCompaction) return IoClass::kCompactionWrite;
  if (intent.priority == Env::IO_HIGH) return IoClass::kFlush;
  if (intent.priority == Env::IO_LOW || intent.priority == Env::IO_MID) return IoClass::kCompactionWrite;
  if (intent.job_level != DataClass::kNoLevel) {
    return intent.job_level == 0 ? IoClass::kFlush : IoClass::kCompactionWrite;
  }
  if (intent.hint == Env::WLTH_MEDIUM) return IoClass::kFlush;
  if (intent.hint == Env::WLTH_LONG || intent.hint == Env::WLTH_EXTREME) return IoClass::kCompactionWrite;
  return IoClass::kOther;
}

IoClass ReadClassOf(FileType type, const Intent& intent) {
  if (type == FileType::kWal) return IoClass::kWal;
  if (type == FileType::kManifest || type == FileType::kCurrent) return IoClass::kMetadata;
  if (type != FileType::kTable) return IoClass::kOther;
  switch (intent.activity) {
    case Activity::kFlush:
      return IoClass::kFlush;
    case Activity::kCompaction:
      return IoClass::kCompactionRead;
    case Activity::kVerification:
      return IoClass::kOther;
    case Activity::kUser:
      return IoClass::kUserRead;
    case Activity::kUnknown:
      break;
  }
  const bool background =
      intent.priority == Env::IO_LOW || intent.priority == Env::IO_MID || intent.job_level != DataClass::kNoLevel;
  return background ? IoClass::kCompactionRead : IoClass::kUserRead;
}

}  // namespace isozone
