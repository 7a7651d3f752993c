// A file being written. Data reaches the device through FileWriter's aligned buffers whether RocksDB asks for direct
// I/O or not, and no cache lies below; so direct writes are not advertised: RocksDB would pad its last block and write
// it again later, which zones cannot do in place.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "adapter/file_class.h"
#include "adapter/mounted_system.h"
#include "fs/file_system.h"

namespace isozone {

class WritableFile : public rocksdb::FSWritableFile {
 public:
  // `level` is what the writer was opened with.
  WritableFile(std::string path, const rocksdb::FileOptions& options, std::unique_ptr<FileWriter> writer, int8_t level,
               std::shared_ptr<MountedSystem> system);
  ~WritableFile() override;

  using FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override;
  using FSWritableFile::PositionedAppend;
  // At the end of the file, or before it: then what follows `offset` is cut off first.
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const rocksdb::IOOptions& options,
                                     const rocksdb::DataVerificationInfo& verification,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(uint64_t size, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  // Starts writing out; with strict_bytes_per_sync it waits until that is durable.
  rocksdb::IOStatus RangeSync(uint64_t offset, uint64_t length, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;

  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  void SetWriteLifeTimeHint(rocksdb::Env::WriteLifeTimeHint hint) override;
  rocksdb::IOStatus InvalidateCache(size_t, size_t) override { return rocksdb::IOStatus::OK(); }
  // Zones are allocated as data comes.
  void PrepareWrite(size_t, size_t, const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {}

 private:
  template <typename Operation>
  rocksdb::IOStatus Run(Operation&& operation);
  // Tells the writer what the next data is for, where that has changed.
  void Classify(const rocksdb::IOOptions& options);
  // Tells it the level of the LSM tree (lsm_level.h), where more is known of it now.
  void UpdateLevel();

  const std::string path_;
  const FileType type_;
  Intent intent_;
  int8_t job_level_;  // as this file's job was last told
  int8_t level_;      // as the writer was last told
  std::unique_ptr<FileWriter> writer_;
  MountedSystem::OpenFile open_;
};

}  // namespace isozone
