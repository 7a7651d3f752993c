#include "rocksdb/adapter/random_access_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rocksdb/adapter/async_read.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::FSReadRequest;
using rocksdb::IOStatus;
using rocksdb::Slice;

RandomAccessFile::RandomAccessFile(std::string path, const rocksdb::FileOptions& options,
                                   std::unique_ptr<FileReader> reader, std::shared_ptr<MountedSystem> system)
    : path_(std::move(path)),
      type_(FileTypeOf(path_)),
      direct_(options.use_direct_reads && !options.use_mmap_reads),
      alignment_(system->fs().state().device().geometry().block_size),
      reader_(std::move(reader)),
      open_(std::move(system), nullptr) {}

RandomAccessFile::~RandomAccessFile() { open_.Destroy(std::move(reader_)); }

template <typename Operation>
IOStatus RandomAccessFile::Run(Operation&& operation) const {
  return WithoutExceptions([&] {
    const Status usable = open_.Check();
    return usable.ok() ? operation() : ToIoStatus(usable, path_);
  });
}

IoClass RandomAccessFile::ClassOf(const rocksdb::IOOptions& options) const {
  return ReadClassOf(type_, {ActivityOf(options), options.rate_limiter_priority, rocksdb::Env::WLTH_NOT_SET,
                             RunningJob::OfThread().level});
}

IOStatus RandomAccessFile::Read(uint64_t offset, size_t n, const rocksdb::IOOptions& options, Slice* result,
                                char* scratch, rocksdb::IODebugContext*) const {
  return Run([&] {
    *result = Slice();
    if (scratch == nullptr) return ToIoStatus(ReadCopy(offset, n, ClassOf(options), result), path_);
    const Result<size_t> read = reader_->Read(offset, std::as_writable_bytes(std::span(scratch, n)), ClassOf(options));
    if (read.ok()) *result = Slice(scratch, *read);
    return ToIoStatus(read.status(), path_);
  });
}

Status RandomAccessFile::ReadCopy(uint64_t offset, size_t n, IoClass io_class, Slice* result) const {
  const MutexLock lock(mu_);
  if (copy_.size() == 0) {
    AlignedBuffer copy(reader_->size());
    {
      const MutexUnlock unlock(mu_);
      ISOZONE_ASSIGN_OR_RETURN(const size_t read, reader_->Read(0, copy.span(), io_class));
      if (read != copy.size()) return Status::IoError("the file became shorter while it was read");
    }
    if (copy_.size() == 0) copy_ = std::move(copy);  // otherwise another read was faster
  }
  if (offset >= copy_.size()) return Status();
  *result = Slice(reinterpret_cast<const char*>(copy_.data()) + offset, std::min<uint64_t>(n, copy_.size() - offset));
  return Status();
}

IOStatus RandomAccessFile::MultiRead(FSReadRequest* requests, size_t count, const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext*) {
  return Run([&] {
    std::vector<FileRead> reads(count);
    for (size_t i = 0; i < count; ++i) {
      reads[i].offset = requests[i].offset;
      reads[i].buffer = std::as_writable_bytes(std::span(requests[i].scratch, requests[i].len));
      reads[i].io_class = ClassOf(options);
    }
    ReadAll(*reader_, reads);
    for (size_t i = 0; i < count; ++i) {
      requests[i].status = ToIoStatus(reads[i].status, path_);
      requests[i].result = Slice(requests[i].scratch, reads[i].status.ok() ? reads[i].bytes_read : 0);
    }
    return IOStatus::OK();
  });
}

IOStatus RandomAccessFile::ReadAsync(FSReadRequest& request, const rocksdb::IOOptions& options,
                                     ReadAsyncCallback callback, void* callback_argument, void** io_handle,
                                     rocksdb::IOHandleDeleter* deleter, rocksdb::IODebugContext*) {
  return Run([&] {
    *deleter = [](void* handle) { delete static_cast<AsyncRead*>(handle); };
    *io_handle = new AsyncRead(*reader_, request, ClassOf(options), path_, std::move(callback), callback_argument);
    return IOStatus::OK();
  });
}

size_t RandomAccessFile::GetUniqueId(char* id, size_t max_size) const {
  return open_.system().WriteUniqueId(reader_->inode(), id, max_size);
}

#if ISOZONE_ROCKSDB_HAS_READER_FILE_SIZE
IOStatus RandomAccessFile::GetFileSize(uint64_t* size) {
  return WithoutExceptions([&] {
    *size = reader_->size();
    return IOStatus::OK();
  });
}
#endif

}  // namespace isozone
