// For the tests of the adapter: a file system on an emulated SSD, and databases in the way of either version of
// RocksDB.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "base/uri.h"
#include "device/open_device.h"
#include "rocksdb/adapter/zoned_file_system.h"
#include "store/mount/format_device.h"

namespace isozone {

// Makes a file system in `directory` on a new device, with `geometry` as in a URI and as fast as memory. If that fails,
// the test has failed, and the result is null.
inline std::unique_ptr<ZonedFileSystem> MakeEmulatedFileSystem(const std::string& directory,
                                                               const std::string& geometry) {
  const std::string text = "emu:" + directory + "/ssd.img?timing=off&" + geometry;
  const auto make = [&text]() -> Result<std::unique_ptr<ZonedFileSystem>> {
    ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
    Uri to_create = uri;
    ISOZONE_RETURN_IF_ERROR(CreateDevice(to_create));
    {
      ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<ZonedDevice> device, OpenDevice(uri, OpenMode::kReadWrite));
      ISOZONE_RETURN_IF_ERROR(FormatDevice(*device, {}));
    }
    return ZonedFileSystem::Open("isozone://" + text);
  };
  auto made = make();
  if (made.ok()) return std::move(*made);
  ADD_FAILURE() << made.status().ToString();
  return nullptr;
}

// Opens a database: RocksDB returns it as DB** before version 11, as unique_ptr<DB>* since.
template <typename Database>
rocksdb::Status OpenInto(const rocksdb::Options& options, const std::string& path, std::unique_ptr<Database>* db) {
  if constexpr (requires { Database::Open(options, path, db); }) {
    return Database::Open(options, path, db);
  } else {
    Database* raw = nullptr;
    const rocksdb::Status status = Database::Open(options, path, &raw);
    db->reset(raw);
    return status;
  }
}

}  // namespace isozone
