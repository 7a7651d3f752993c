#include "rocksdb/adapter/random_rw_file.h"

#include <span>
#include <utility>

#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::IOStatus;
using rocksdb::Slice;

RandomRWFile::RandomRWFile(std::string path, std::unique_ptr<FileReader> reader, std::shared_ptr<MountedSystem> system)
    : path_(std::move(path)), reader_(std::move(reader)), system_(std::move(system)), open_(system_, nullptr) {}

RandomRWFile::~RandomRWFile() { open_.Destroy(std::move(reader_)); }

IOStatus RandomRWFile::Write(uint64_t offset, const Slice& data, const rocksdb::IOOptions&, rocksdb::IODebugContext*) {
  return WithoutExceptions([&] {
    const Status status = system_->With([&](FileSystem& fs) -> Status {
      if (offset > reader_->size()) ISOZONE_RETURN_IF_ERROR(fs.Truncate(path_, offset));
      return fs.Overwrite(path_, offset, std::as_bytes(std::span(data.data(), data.size())));
    });
    return ToIoStatus(status, path_);
  });
}

IOStatus RandomRWFile::Read(uint64_t offset, size_t n, const rocksdb::IOOptions&, Slice* result, char* scratch,
                            rocksdb::IODebugContext*) const {
  return WithoutExceptions([&] {
    if (const Status usable = open_.Check(); !usable.ok()) return ToIoStatus(usable, path_);
    const Result<size_t> read = reader_->Read(offset, std::as_writable_bytes(std::span(scratch, n)), IoClass::kOther);
    *result = Slice(scratch, read.ok() ? *read : 0);
    return ToIoStatus(read.status(), path_);
  });
}

IOStatus RandomRWFile::Flush(const rocksdb::IOOptions&, rocksdb::IODebugContext*) { return IOStatus::OK(); }
IOStatus RandomRWFile::Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) { return IOStatus::OK(); }
IOStatus RandomRWFile::Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) { return IOStatus::OK(); }

}  // namespace isozone
