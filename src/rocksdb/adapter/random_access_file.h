// A file that is read at any offset: tables and blobs. Reads go from the device directly to the caller's memory.
// RocksDB's own prefetch buffer reads ahead for iterators and compactions; it does so because Prefetch is not
// supported.
//
// With use_mmap_reads there is no mapping. Reads into memory of the caller are ordinary reads. Table formats that pass
// no memory (plain and cuckoo tables) get a copy of the whole file, which is made at the first such read.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/mounted_system.h"
#include "store/file_system.h"

namespace isozone {

class RandomAccessFile : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(std::string path, const rocksdb::FileOptions& options, std::unique_ptr<FileReader> reader,
                   std::shared_ptr<MountedSystem> system);
  ~RandomAccessFile() override;

  rocksdb::IOStatus Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* debug) const override;
  rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  // The read is in flight when this returns; its handle is an AsyncRead.
  rocksdb::IOStatus ReadAsync(rocksdb::FSReadRequest& request, const rocksdb::IOOptions& options,
                              ReadAsyncCallback callback, void* callback_argument, void** io_handle,
                              rocksdb::IOHandleDeleter* deleter, rocksdb::IODebugContext* debug) override;

  size_t GetUniqueId(char* id, size_t max_size) const override;
  bool use_direct_io() const override { return direct_; }
  size_t GetRequiredBufferAlignment() const override { return alignment_; }
  rocksdb::IOStatus InvalidateCache(size_t, size_t) override { return rocksdb::IOStatus::OK(); }
#if ISOZONE_ROCKSDB_HAS_READER_FILE_SIZE
  rocksdb::IOStatus GetFileSize(uint64_t* size) override;
#endif

 private:
  // Returns operation(), or why the file must not be used.
  template <typename Operation>
  rocksdb::IOStatus Run(Operation&& operation) const;
  IoClass ClassOf(const rocksdb::IOOptions& options) const;
  Status ReadCopy(uint64_t offset, size_t n, IoClass io_class, rocksdb::Slice* result) const;

  const std::string path_;
  const FileType type_;
  const bool direct_;
  const size_t alignment_;  // bytes; a block of the device
  std::unique_ptr<FileReader> reader_;
  const MountedSystem::OpenFile open_;

  mutable Mutex mu_;
  mutable AlignedBuffer copy_ ISOZONE_GUARDED_BY(mu_);  // of the whole file, for reads that pass no memory
};

}  // namespace isozone
