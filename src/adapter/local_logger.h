// RocksDB's info log in a local directory: the option log_dir= of a URI.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/io_status.h>

namespace isozone {

// Makes a logger for the log that RocksDB calls `path` ("/db/LOG"). It writes to the file db_LOG of `log_dir`, which is
// created if it is missing. The previous log of the same name is kept as NAME.old.
rocksdb::IOStatus NewLocalLogger(const std::string& log_dir, const std::string& path,
                                 std::shared_ptr<rocksdb::Logger>* result);

}  // namespace isozone
