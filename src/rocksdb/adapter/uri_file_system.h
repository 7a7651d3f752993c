// UriFileSystem: what the file systems of all devices share. That is the URI they come from, and those expectations of
// RocksDB beyond its header (which POSIX fulfils) that do not depend on a device:
//   * paths may be relative, to the root, and hold "." and ".."
//   * compactions read ahead without direct I/O too (2 MiB if RocksDB's option is 0), because there is no page cache
//   * the info log goes to a local directory if log_dir= names one
// The info log tells of databases that are opened here (opening_database.h).
//
// Thread safety: any thread may call any method.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

namespace isozone {

class UriFileSystem : public rocksdb::FileSystem {
 public:
  static const char* kClassName() { return "isozone-uri"; }
  // Whether `file_system` is one of Isozone's, or wraps one.
  static bool IsOurs(const rocksdb::FileSystem& file_system);
  bool IsInstanceOf(const std::string& name) const override;

  // Returns the URI, from which RocksDB can make this file system again.
  std::string GetId() const override { return uri_; }
  rocksdb::IOStatus NewLogger(const std::string& name, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions& options, std::string* path,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string& path, const rocksdb::IOOptions& options, std::string* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::FileOptions OptimizeForCompactionTableRead(const rocksdb::FileOptions& options,
                                                      const rocksdb::ImmutableDBOptions& db_options) const override;

 protected:
  UriFileSystem(std::string uri, std::string log_dir);
  bool has_log_dir() const { return !log_dir_.empty(); }

 private:
  const std::string uri_;
  const std::string log_dir_;  // empty: info logs go to the device
};

}  // namespace isozone
