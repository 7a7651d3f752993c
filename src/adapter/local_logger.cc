#include "adapter/local_logger.h"

#include <rocksdb/file_system.h>

namespace isozone {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

IOStatus NewLocalLogger(const std::string& log_dir, const std::string& path, std::shared_ptr<rocksdb::Logger>* result) {
  const std::shared_ptr<rocksdb::FileSystem> local = rocksdb::FileSystem::Default();
  IOStatus status = local->CreateDirIfMissing(log_dir, IOOptions(), nullptr);
  if (!status.ok()) return status;
  std::string flat = path.substr(1);  // "/db/LOG" -> "db_LOG"
  std::replace(flat.begin(), flat.end(), '/', '_');
  const std::string file = log_dir + "/" + flat;
  if (local->FileExists(file, IOOptions(), nullptr).ok()) {
    status = local->RenameFile(file, file + ".old", IOOptions(), nullptr);
    if (!status.ok()) return status;
  }
  return local->NewLogger(file, IOOptions(), result, nullptr);
}

}  // namespace isozone
