#include "rocksdb/adapter/local_logger.h"

#include <filesystem>
#include <system_error>

#include <rocksdb/file_system.h>

namespace isozone {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

IOStatus NewLocalLogger(const std::string& log_dir, const std::string& path, std::shared_ptr<rocksdb::Logger>* result) {
  const std::string file = log_dir + path;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  if (error) return IOStatus::IOError("cannot make the directory of " + file, error.message());
  const std::shared_ptr<rocksdb::FileSystem> local = rocksdb::FileSystem::Default();
  if (local->FileExists(file, IOOptions(), nullptr).ok()) {
    const IOStatus status = local->RenameFile(file, file + ".old", IOOptions(), nullptr);
    if (!status.ok()) return status;
  }
  return local->NewLogger(file, IOOptions(), result, nullptr);
}

}  // namespace isozone
