// RocksDB's info log in a local directory: the option log_dir= of a URI.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/io_status.h>

namespace isozone {

// Makes a logger for the log that RocksDB calls `path` ("/db/LOG"), below `log_dir`, which is made where it is missing:
// no two databases of a device write the same file. The previous log is kept as LOG.old.
rocksdb::IOStatus NewLocalLogger(const std::string& log_dir, const std::string& path,
                                 std::shared_ptr<rocksdb::Logger>* result);

}  // namespace isozone
