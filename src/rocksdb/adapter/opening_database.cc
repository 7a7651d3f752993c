#include "rocksdb/adapter/opening_database.h"

#include <cstdarg>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {
namespace {

struct Note {
  std::string folder;
  std::function<void(rocksdb::DB*)> opened;
};
thread_local Note note;

void Opened(rocksdb::DB* db) {
  const rocksdb::IOStatus status = WithoutExceptions([db] {
    const Note taken = std::exchange(note, Note());
    if (taken.opened && taken.folder == AbsolutePath(db->GetName())) taken.opened(db);
    return rocksdb::IOStatus::OK();
  });
  if (!status.ok()) Log().error("a database is not steered: {}", status.ToString());
}

class WatchedLogger : public rocksdb::LoggerWrapper {
 public:
  explicit WatchedLogger(std::shared_ptr<rocksdb::Logger> target)
      : LoggerWrapper(target.get()), target_(std::move(target)) {
    const MutexLock lock(AllOfThem().mu);
    AllOfThem().loggers.insert(this);
  }
  ~WatchedLogger() override {
    const MutexLock lock(AllOfThem().mu);
    AllOfThem().loggers.erase(this);
  }
  static bool Is(const rocksdb::Logger* logger) {
    const MutexLock lock(AllOfThem().mu);
    return AllOfThem().loggers.contains(logger);
  }

  void LogHeader(const char* format, va_list arguments) override {
    Look(format, arguments);
    target_->LogHeader(format, arguments);
  }
  void Logv(const char* format, va_list arguments) override {
    Look(format, arguments);
    target_->Logv(format, arguments);
  }
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    Look(format, arguments);
    target_->Logv(level, format, arguments);
  }

 private:
  struct All {
    Mutex mu;
    std::set<const rocksdb::Logger*> loggers ISOZONE_GUARDED_BY(mu);
  };
  // Never destroyed: a logger goes when its last user does.
  static All& AllOfThem() {
    static All& all = *new All;
    return all;
  }

  static void Look(const char* format, va_list arguments) {
    if (std::string_view(format) != "DB pointer %p") return;
    va_list copy;
    va_copy(copy, arguments);
    // RocksDB passes its implementation, of which rocksdb::DB is the first and only base.
    auto* const db = static_cast<rocksdb::DB*>(va_arg(copy, void*));
    va_end(copy);
    Opened(db);
  }

  const std::shared_ptr<rocksdb::Logger> target_;
};

}  // namespace

void OpeningDatabase::FileOpened(std::string_view path) {
  if (FileTypeOf(path) != FileType::kManifest) return;
  note = {.folder = std::string(path.substr(0, path.rfind('/'))), .opened = nullptr};
}

void OpeningDatabase::ListenerAsked(std::function<void(rocksdb::DB*)> opened) {
  if (!note.folder.empty() && !note.opened) note.opened = std::move(opened);
}

std::shared_ptr<rocksdb::Logger> OpeningDatabase::Watch(std::shared_ptr<rocksdb::Logger> target) {
  return std::make_shared<WatchedLogger>(std::move(target));
}

bool OpeningDatabase::IsWatched(const rocksdb::Logger* logger) { return WatchedLogger::Is(logger); }

}  // namespace isozone
