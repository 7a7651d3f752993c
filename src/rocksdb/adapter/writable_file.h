// A file being written. Data reaches the device through FileWriter's aligned buffers, whether RocksDB asks for direct
// I/O or not, and there is no cache below. So this file does not offer direct writes: RocksDB would pad its last block
// and write it again later, which zones cannot do in place.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/mounted_system.h"
#include "store/file_system.h"

namespace isozone {

class WritableFile : public rocksdb::FSWritableFile {
 public:
  // `level` is the level with which the writer was opened.
  WritableFile(std::string path, const rocksdb::FileOptions& options, std::unique_ptr<FileWriter> writer, int8_t level,
               std::shared_ptr<MountedSystem> system);
  ~WritableFile() override;

  using FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override;
  using FSWritableFile::PositionedAppend;
  // Appends at the end of the file. If `offset` is before the end, first cuts off what follows it.
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const rocksdb::IOOptions& options,
                                     const rocksdb::DataVerificationInfo& verification,
                                     rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(uint64_t size, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  // Starts writing out. With strict_bytes_per_sync it waits until the data is durable.
  rocksdb::IOStatus RangeSync(uint64_t offset, uint64_t length, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;

  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  void SetWriteLifeTimeHint(rocksdb::Env::WriteLifeTimeHint hint) override;
  rocksdb::IOStatus InvalidateCache(size_t, size_t) override { return rocksdb::IOStatus::OK(); }
  // Zones are allocated as data arrives.
  void PrepareWrite(size_t, size_t, const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {}

 private:
  template <typename Operation>
  rocksdb::IOStatus Run(Operation&& operation);
  // Returns OK in place of an error of a write to the info log: RocksDB goes on writing after one, and some builds of
  // 7.8 end the process then.
  rocksdb::IOStatus Forgive(rocksdb::IOStatus status);
  // Tells the writer what the next data is for, if that has changed.
  void Classify(const rocksdb::IOOptions& options);
  // Tells the writer the level of the LSM tree (lsm_level.h), if it is better known now.
  void UpdateLevel();

  const std::string path_;
  const FileType type_;
  const bool is_info_log_;
  bool forgiven_ = false;  // some write failed
  Intent intent_;
  int8_t job_level_;  // the level of this file's job, when it was last known
  int8_t level_;      // the level that the writer was last told
  std::unique_ptr<FileWriter> writer_;
  MountedSystem::OpenFile open_;
};

}  // namespace isozone
