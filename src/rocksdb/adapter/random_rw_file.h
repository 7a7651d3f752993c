// A file that is changed in place. RocksDB does that only to small parts of a file: to the global sequence number in a
// table that it ingests. Each Write is durable when it returns (FileSystem::Overwrite), so Sync and Flush have nothing
// to do. A Write beyond the end fills the gap with zeros.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "rocksdb/adapter/mounted_system.h"
#include "store/file_system.h"

namespace isozone {

class RandomRWFile : public rocksdb::FSRandomRWFile {
 public:
  // `path` is in the form that FileSystem takes.
  RandomRWFile(std::string path, std::unique_ptr<FileReader> reader, std::shared_ptr<MountedSystem> system);
  ~RandomRWFile() override;

  rocksdb::IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* debug) const override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override;

 private:
  const std::string path_;
  std::unique_ptr<FileReader> reader_;
  const std::shared_ptr<MountedSystem> system_;
  const MountedSystem::OpenFile open_;
};

}  // namespace isozone
