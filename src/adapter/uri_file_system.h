// What the file systems of all devices have in common: the URI they come from, and of what RocksDB expects beyond its
// header (and POSIX gives it) that which needs no device:
//   * paths may be relative, to the root, and hold "." and ".."
//   * compactions read ahead also without direct I/O (2 MiB where RocksDB's option is 0), since no page cache does
//   * the info log goes to a local directory where log_dir= names one
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

namespace isozone {

// `name` as a path from the root that is normal: no "." or "..", and no slash at the end.
std::string AbsolutePath(const std::string& name);

class UriFileSystem : public rocksdb::FileSystem {
 public:
  // The URI, from which RocksDB can make it again.
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
