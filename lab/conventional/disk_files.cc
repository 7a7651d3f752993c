#include "conventional/disk_files.h"

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

constexpr uint64_t kReadAhead = 128 * kKiB;  // the kernel's default

}  // namespace

// --- Writing ---

IOStatus DiskWritableFile::Append(const Slice& data, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    const Status reserved = open_.file->Reserve(position_ + data.size());
    if (!reserved.ok()) return ToIoStatus(reserved, "");
    IOStatus status = host_->Append(data, options, debug);
    if (!status.ok()) return status;
    open_.file->Wrote(position_, data.size());
    position_ += data.size();
    return status;
  });
}

IOStatus DiskWritableFile::Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    IOStatus status = host_->Truncate(size, options, debug);
    if (!status.ok()) return status;
    open_.file->Truncate(size);
    position_ = size;
    return status;
  });
}

IOStatus DiskWritableFile::Flush(const IOOptions& options, IODebugContext* debug) {
  return host_->Flush(options, debug);
}

IOStatus DiskWritableFile::Sync(const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    open_.file->Sync();
    return IOStatus::OK();
  });
}

IOStatus DiskWritableFile::RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    strict_bytes_per_sync_ ? open_.file->Sync() : open_.file->WriteOut();
    return IOStatus::OK();
  });
}

IOStatus DiskWritableFile::Close(const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    open_.file->WriteOut();
    return host_->Close(options, debug);
  });
}

uint64_t DiskWritableFile::GetFileSize(const IOOptions&, IODebugContext*) { return position_; }

// --- Reading ---

IOStatus DiskSequentialFile::Read(size_t n, const IOOptions& options, Slice* result, char* scratch,
                                  IODebugContext* debug) {
  return WithoutExceptions([&] {
    IOStatus status = host_->Read(n, options, result, scratch, debug);
    if (!status.ok()) return status;
    const uint64_t end = position_ + result->size();
    if (end > read_ahead_to_) {
      const uint64_t from = std::max(position_, read_ahead_to_);
      read_ahead_to_ = RoundUp(end, kReadAhead);
      open_.Read(from, read_ahead_to_ - from);
    }
    position_ = end;
    return status;
  });
}

IOStatus DiskSequentialFile::Skip(uint64_t n) {
  position_ += n;
  return host_->Skip(n);
}

IOStatus DiskRandomAccessFile::Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                                    IODebugContext* debug) const {
  return WithoutExceptions([&] {
    open_.Read(offset, n);
    return host_->Read(offset, n, options, result, scratch, debug);
  });
}

IOStatus DiskRandomAccessFile::MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                                         IODebugContext* debug) {
  return WithoutExceptions([&] {
    std::vector<Extent> extents;
    for (size_t i = 0; i < count; ++i) {
      for (const Extent& extent : open_.file->Lookup(requests[i].offset, requests[i].len)) extents.push_back(extent);
    }
    open_.disk->Read(extents);
    for (size_t i = 0; i < count; ++i) {
      rocksdb::FSReadRequest& request = requests[i];
      request.status = host_->Read(request.offset, request.len, options, &request.result, request.scratch, debug);
    }
    return IOStatus::OK();
  });
}

// --- Both ---

IOStatus DiskRandomRWFile::Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    const Status reserved = open_.file->Reserve(offset + data.size());
    if (!reserved.ok()) return ToIoStatus(reserved, "");
    IOStatus status = host_->Write(offset, data, options, debug);
    if (status.ok()) open_.file->Wrote(offset, data.size());
    return status;
  });
}

IOStatus DiskRandomRWFile::Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                                IODebugContext* debug) const {
  return WithoutExceptions([&] {
    open_.Read(offset, n);
    return host_->Read(offset, n, options, result, scratch, debug);
  });
}

IOStatus DiskRandomRWFile::Flush(const IOOptions& options, IODebugContext* debug) {
  return host_->Flush(options, debug);
}

IOStatus DiskRandomRWFile::Sync(const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    open_.file->Sync();
    return IOStatus::OK();
  });
}

IOStatus DiskRandomRWFile::Fsync(const IOOptions& options, IODebugContext* debug) { return Sync(options, debug); }

IOStatus DiskRandomRWFile::Close(const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    open_.file->WriteOut();
    return host_->Close(options, debug);
  });
}

IOStatus DiskDirectory::Fsync(const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    disk_->CommitMetadata(/*changed=*/false);
    return IOStatus::OK();
  });
}

}  // namespace isozone
