// The database that the clients work on. RocksDB gets its file system by URI and the program knows none but POSIX: a
// library that brings another is preloaded.
//
// The object outlives its openings: closed and opened again, the database has an empty cache but the same file system.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include "base/status.h"
#include "ycsb/arguments.h"

namespace isozone::ycsb {

// "reading user123: ..." where `status` is an error.
Status FromRocksDb(const rocksdb::Status& status, std::string_view verb, std::string_view name);

// The database of the arguments, made new for one phase or found by another, on their file system.
//
// Thread safety: one thread; any number may use db() until it is closed.
class Database {
 public:
  // `arguments` outlive the database.
  explicit Database(const Arguments& arguments) : arguments_(arguments) {}

  // With `create` it must not be there yet, else it must.
  Status Open(bool create);
  // Waits until RocksDB has nothing left to flush or compact. Only while it is open, as all below.
  Status Settle();
  Status Close();
  // Belongs to this object, until Close.
  rocksdb::DB& db() { return *db_; }

 private:
  Status FindEnv();
  Result<uint64_t> Property(const std::string& name);
  Result<bool> IsIdle();

  const Arguments& arguments_;
  std::shared_ptr<rocksdb::Env> guard_;  // of env_; outlives db_
  rocksdb::Env* env_ = nullptr;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace isozone::ycsb
