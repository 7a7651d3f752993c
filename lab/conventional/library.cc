// libisozone_conventional.so: RocksDB finds a DiskFileSystem by its URI, isozone-conventional://DIRECTORY, once the
// library is loaded.
#include <memory>
#include <string>

#include <rocksdb/utilities/object_registry.h>

#include "conventional/disk_file_system.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {
namespace {

rocksdb::FileSystem* FromRegistry(const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard,
                                  std::string* error) {
  const rocksdb::IOStatus status = WithoutExceptions([&] {
    Result<std::unique_ptr<DiskFileSystem>> opened = DiskFileSystem::Open(uri);
    if (opened.ok()) {
      *guard = std::move(opened).value();
    } else {
      *error = opened.status().ToString();
    }
    return rocksdb::IOStatus::OK();
  });
  if (!status.ok()) *error = status.ToString();
  return guard->get();
}

const bool registered = [] {
  return WithoutExceptions([] {
           rocksdb::ObjectLibrary::PatternEntry uri(DiskFileSystem::kClassName(), /*optional=*/false);
           uri.AddSeparator("://");
           rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::FileSystem>(uri, &FromRegistry);
           return rocksdb::IOStatus::OK();
         })
      .ok();
}();

}  // namespace
}  // namespace isozone
