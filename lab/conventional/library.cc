// libisozone_conventional.so: RocksDB finds a DiskFileSystem by its URI, isozone-conventional://DIRECTORY, once the
// library is loaded.
#include <rocksdb/utilities/object_registry.h>

#include "conventional/disk_file_system.h"
#include "rocksdb/adapter/register_file_system.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {
namespace {

const bool registered = [] {
  return WithoutExceptions([] {
           RegisterFileSystem<DiskFileSystem>(*rocksdb::ObjectLibrary::Default());
           return rocksdb::IOStatus::OK();
         })
      .ok();
}();

}  // namespace
}  // namespace isozone
