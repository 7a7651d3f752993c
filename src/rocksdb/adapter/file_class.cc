#include "rocksdb/adapter/file_class.h"

#include <filesystem>

namespace isozone {
namespace {

using rocksdb::Env;

}  // namespace

std::string AbsolutePath(const std::string& name) {
  std::string path = (std::filesystem::path("/") / name).lexically_normal().string();
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Lifetime LifetimeOf(FileType type, Env::WriteLifeTimeHint hint) {
  static_assert(static_cast<int>(Lifetime::kExtreme) == Env::WLTH_EXTREME);
  return LifetimeOf(type, static_cast<Lifetime>(hint));
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
