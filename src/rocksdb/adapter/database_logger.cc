#include "rocksdb/adapter/database_logger.h"

#include <set>
#include <string_view>
#include <utility>

#include <rocksdb/db.h>

#include "base/mutex.h"
#include "rocksdb/adapter/steered_databases.h"

namespace isozone {
namespace {

struct Loggers {
  Mutex mu;
  std::set<const rocksdb::Logger*> all ISOZONE_GUARDED_BY(mu);
};
// Never destroyed: a logger goes when its last user does.
Loggers& TheLoggers() {
  static Loggers& loggers = *new Loggers;
  return loggers;
}

}  // namespace

DatabaseLogger::DatabaseLogger(std::shared_ptr<rocksdb::Logger> target) : target_(std::move(target)) {
  Loggers& loggers = TheLoggers();
  const MutexLock lock(loggers.mu);
  loggers.all.insert(this);
}

DatabaseLogger::~DatabaseLogger() {
  Loggers& loggers = TheLoggers();
  const MutexLock lock(loggers.mu);
  loggers.all.erase(this);
}

bool DatabaseLogger::Is(const rocksdb::Logger* logger) {
  Loggers& loggers = TheLoggers();
  const MutexLock lock(loggers.mu);
  return loggers.all.contains(logger);
}

void DatabaseLogger::LogHeader(const char* format, va_list arguments) {
  Watch(format, arguments);
  target_->LogHeader(format, arguments);
}

void DatabaseLogger::Logv(const char* format, va_list arguments) {
  Watch(format, arguments);
  target_->Logv(format, arguments);
}

void DatabaseLogger::Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) {
  Watch(format, arguments);
  target_->Logv(level, format, arguments);
}

void DatabaseLogger::Watch(const char* format, va_list arguments) {
  if (std::string_view(format) != "DB pointer %p") return;
  va_list copy;
  va_copy(copy, arguments);
  // RocksDB passes its implementation, of which rocksdb::DB is the first and only base.
  auto* const db = static_cast<rocksdb::DB*>(va_arg(copy, void*));
  va_end(copy);
  SteeredDatabases::Opened(db);
}

}  // namespace isozone
