// How RocksDB finds a file system of Isozone by its URI. A library calls RegisterFileSystem once for each kind that it
// has, when it is loaded.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>

#include "base/status.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

// Makes RocksDB open each URI that begins with the class name of Kind and "://" by Kind::Open(uri), which returns a
// Result<std::unique_ptr<Kind>>. The text of its error reaches the user.
template <typename Kind>
void RegisterFileSystem(rocksdb::ObjectLibrary& library) {
  rocksdb::ObjectLibrary::PatternEntry any_uri(Kind::kClassName(), /*optional=*/false);
  any_uri.AddSeparator("://");
  library.AddFactory<rocksdb::FileSystem>(
      any_uri, [](const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard, std::string* error) {
        const rocksdb::IOStatus status = WithoutExceptions([&] {
          Result<std::unique_ptr<Kind>> opened = Kind::Open(uri);
          if (!opened.ok()) {
            *error = opened.status().ToString();
            return rocksdb::IOStatus::OK();
          }
          *guard = std::move(opened).value();
          return rocksdb::IOStatus::OK();
        });
        if (!status.ok()) *error = status.ToString();
        return guard->get();
      });
}

}  // namespace isozone
