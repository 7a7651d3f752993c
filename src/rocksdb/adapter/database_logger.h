// The info log of a database, which tells SteeredDatabases that the database has been opened.
//
// At the end of DB::Open, RocksDB 7.8 to 11.8 logs "DB pointer %p" with the address of the database, of whatever level
// the log is. No event of a listener tells as much so early: the first one that names its database comes with the first
// flush, and a database that is opened with a full level 0 takes no writes and so never flushes. DB::OpenForReadOnly
// and DB::OpenAsSecondary do not log that line. If another version does not, nothing is steered there, and a line says
// so (steered_databases.h).
//
// RocksDB may put a log that rolls its files in front of this one. It passes that line on as it is, and what it repeats
// at the top of further files has another format.
//
// Thread safety: as the log behind it, which every thread may write to.
#pragma once

#include <cstdarg>
#include <memory>

#include <rocksdb/env.h>

namespace isozone {

class DatabaseLogger : public rocksdb::Logger {
 public:
  explicit DatabaseLogger(std::shared_ptr<rocksdb::Logger> target);
  ~DatabaseLogger() override;
  // Whether `logger` is one. RocksDB may be built without RTTI, which a cast would take.
  static bool Is(const rocksdb::Logger* logger);

  rocksdb::Status Close() override { return target_->Close(); }
  void LogHeader(const char* format, va_list arguments) override;
  void Logv(const char* format, va_list arguments) override;
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override;
  size_t GetLogFileSize() const override { return target_->GetLogFileSize(); }
  void Flush() override { target_->Flush(); }
  rocksdb::InfoLogLevel GetInfoLogLevel() const override { return target_->GetInfoLogLevel(); }
  void SetInfoLogLevel(rocksdb::InfoLogLevel level) override { target_->SetInfoLogLevel(level); }

 private:
  static void Watch(const char* format, va_list arguments);

  const std::shared_ptr<rocksdb::Logger> target_;
};

}  // namespace isozone
