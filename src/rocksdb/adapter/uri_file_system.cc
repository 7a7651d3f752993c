#include "rocksdb/adapter/uri_file_system.h"

#include <utility>

#include "base/units.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/local_logger.h"
#include "rocksdb/adapter/opening_database.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

namespace {

constexpr size_t kCompactionReadahead = 2 * kMiB;

}  // namespace

UriFileSystem::UriFileSystem(std::string uri, std::string log_dir)
    : uri_(std::move(uri)), log_dir_(std::move(log_dir)) {}

bool UriFileSystem::IsOurs(const rocksdb::FileSystem& file_system) {
  return file_system.CheckedCast<UriFileSystem>() != nullptr;
}

bool UriFileSystem::IsInstanceOf(const std::string& name) const {
  return name == UriFileSystem::kClassName() || rocksdb::FileSystem::IsInstanceOf(name);
}

IOStatus UriFileSystem::NewLogger(const std::string& name, const IOOptions& options,
                                  std::shared_ptr<rocksdb::Logger>* result, IODebugContext* debug) {
  return WithoutExceptions([&] {
    std::shared_ptr<rocksdb::Logger> logger;
    const IOStatus status = has_log_dir() ? NewLocalLogger(log_dir_, AbsolutePath(name), &logger)
                                          : rocksdb::FileSystem::NewLogger(name, options, &logger, debug);
    if (status.ok()) *result = OpeningDatabase::Watch(std::move(logger));
    return status;
  });
}

IOStatus UriFileSystem::GetTestDirectory(const IOOptions& options, std::string* path, IODebugContext* debug) {
  *path = "/rocksdbtest";
  return CreateDirIfMissing(*path, options, debug);
}

IOStatus UriFileSystem::GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                                        IODebugContext*) {
  return WithoutExceptions([&] {
    *result = AbsolutePath(path);
    return IOStatus::OK();
  });
}

FileOptions UriFileSystem::OptimizeForCompactionTableRead(const FileOptions& options,
                                                          const rocksdb::ImmutableDBOptions& db_options) const {
  FileOptions optimized = rocksdb::FileSystem::OptimizeForCompactionTableRead(options, db_options);
  if (optimized.compaction_readahead_size == 0) optimized.compaction_readahead_size = kCompactionReadahead;
  return optimized;
}

}  // namespace isozone
