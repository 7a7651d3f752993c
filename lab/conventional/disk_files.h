// Open files of a Disk. Each consists of the host's file, which has the bytes, and the DiskFile, which models the time.
//
// Thread safety: as RocksDB requires of such files. Sync may run concurrently with Append.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <rocksdb/file_system.h>

#include "conventional/disk.h"
#include "rocksdb/adapter/rocksdb_version.h"

namespace isozone {

// What every open file holds. The file is destroyed before the disk.
struct OpenDiskFile {
  std::shared_ptr<Disk> disk;
  std::shared_ptr<DiskFile> file;

  void Read(uint64_t offset, uint64_t length) const { disk->Read(file->Lookup(offset, length)); }
};

class DiskWritableFile : public rocksdb::FSWritableFile {
 public:
  // Continues at `position` of the file, in bytes.
  DiskWritableFile(std::unique_ptr<rocksdb::FSWritableFile> host, OpenDiskFile open, uint64_t position,
                   const rocksdb::FileOptions& options)
      : FSWritableFile(options), host_(std::move(host)), open_(std::move(open)), position_(position) {}

  using FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(uint64_t size, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  // Writes to the page cache, where appended data is anyway.
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  // Starts writing out. With strict_bytes_per_sync it waits until the data is durable.
  rocksdb::IOStatus RangeSync(uint64_t offset, uint64_t length, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  // Blocks are allocated as data is written out.
  void PrepareWrite(size_t, size_t, const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {}

 private:
  const std::unique_ptr<rocksdb::FSWritableFile> host_;
  const OpenDiskFile open_;
  uint64_t position_;  // the end of the file, in bytes
};

class DiskSequentialFile : public rocksdb::FSSequentialFile {
 public:
  DiskSequentialFile(std::unique_ptr<rocksdb::FSSequentialFile> host, OpenDiskFile open)
      : host_(std::move(host)), open_(std::move(open)) {}

  rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Skip(uint64_t n) override;

 private:
  const std::unique_ptr<rocksdb::FSSequentialFile> host_;
  const OpenDiskFile open_;
  uint64_t position_ = 0;
  uint64_t read_ahead_to_ = 0;  // in bytes; sequential reads are read ahead, as the kernel does it
};

class DiskRandomAccessFile : public rocksdb::FSRandomAccessFile {
 public:
  DiskRandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> host, OpenDiskFile open)
      : host_(std::move(host)), open_(std::move(open)) {}

  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* debug) const override;
  // All requests go to the device together.
  rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  size_t GetUniqueId(char* id, size_t max_size) const override { return host_->GetUniqueId(id, max_size); }
#if ISOZONE_ROCKSDB_HAS_READER_FILE_SIZE
  rocksdb::IOStatus GetFileSize(uint64_t* size) override { return host_->GetFileSize(size); }
#endif

 private:
  const std::unique_ptr<rocksdb::FSRandomAccessFile> host_;
  const OpenDiskFile open_;
};

class DiskRandomRWFile : public rocksdb::FSRandomRWFile {
 public:
  DiskRandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> host, OpenDiskFile open)
      : host_(std::move(host)), open_(std::move(open)) {}

  rocksdb::IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* debug) const override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;

 private:
  const std::unique_ptr<rocksdb::FSRandomRWFile> host_;
  const OpenDiskFile open_;
};

class DiskDirectory : public rocksdb::FSDirectory {
 public:
  DiskDirectory(std::unique_ptr<rocksdb::FSDirectory> host, std::shared_ptr<Disk> disk)
      : host_(std::move(host)), disk_(std::move(disk)) {}

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return host_->Close(options, debug);
  }
  size_t GetUniqueId(char* id, size_t max_size) const override { return host_->GetUniqueId(id, max_size); }

 private:
  const std::unique_ptr<rocksdb::FSDirectory> host_;
  const std::shared_ptr<Disk> disk_;
};

}  // namespace isozone
