#include "rocksdb/adapter/sequential_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rocksdb/adapter/running_job.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::IOStatus;

SequentialFile::SequentialFile(std::string path, std::unique_ptr<FileReader> reader,
                               std::shared_ptr<MountedSystem> system)
    : path_(std::move(path)), type_(FileTypeOf(path_)), reader_(std::move(reader)), open_(std::move(system), nullptr) {}

SequentialFile::~SequentialFile() { open_.Destroy(std::move(reader_)); }

IOStatus SequentialFile::Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result, char* scratch,
                              rocksdb::IODebugContext*) {
  return WithoutExceptions([&] {
    const Intent intent{ActivityOf(options), options.rate_limiter_priority, rocksdb::Env::WLTH_NOT_SET,
                        RunningJob::OfThread().level};
    const Result<size_t> read = ReadNext(std::as_writable_bytes(std::span(scratch, n)), ReadClassOf(type_, intent));
    *result = rocksdb::Slice(scratch, read.ok() ? *read : 0);
    return ToIoStatus(read.status(), path_);
  });
}

IOStatus SequentialFile::Skip(uint64_t n) {
  position_ += n;
  return IOStatus::OK();
}

IOStatus SequentialFile::PositionedRead(uint64_t offset, size_t n, const rocksdb::IOOptions& options,
                                        rocksdb::Slice* result, char* scratch, rocksdb::IODebugContext*) {
  return WithoutExceptions([&] {
    const Intent intent{ActivityOf(options), options.rate_limiter_priority, rocksdb::Env::WLTH_NOT_SET,
                        RunningJob::OfThread().level};
    const Result<size_t> read =
        ReadAt(offset, std::as_writable_bytes(std::span(scratch, n)), ReadClassOf(type_, intent));
    *result = rocksdb::Slice(scratch, read.ok() ? *read : 0);
    return ToIoStatus(read.status(), path_);
  });
}

IOStatus SequentialFile::InvalidateCache(size_t, size_t) {
  window_length_ = 0;
  return IOStatus::OK();
}

std::span<const std::byte> SequentialFile::Ahead() const {
  if (position_ < window_offset_ || position_ >= window_offset_ + window_length_) return {};
  return window_.span().first(window_length_).subspan(position_ - window_offset_);
}

Result<size_t> SequentialFile::ReadAt(uint64_t offset, std::span<std::byte> out, IoClass io_class) {
  ISOZONE_RETURN_IF_ERROR(open_.Check());
  return reader_->Read(offset, out, io_class);
}

Result<size_t> SequentialFile::ReadNext(std::span<std::byte> out, IoClass io_class) {
  size_t done = 0;
  while (done < out.size()) {
    const std::span<std::byte> rest = out.subspan(done);
    std::span<const std::byte> ahead = Ahead();
    if (ahead.empty() && rest.size() >= kWindow) {
      ISOZONE_ASSIGN_OR_RETURN(const size_t read, ReadAt(position_, rest, io_class));
      position_ += read;
      return done + read;
    }
    if (ahead.empty()) {
      if (window_.size() == 0) window_ = AlignedBuffer(kWindow);
      window_length_ = 0;
      ISOZONE_ASSIGN_OR_RETURN(const size_t read, ReadAt(position_, window_.span(), io_class));
      window_offset_ = position_;
      window_length_ = read;
      if (read == 0) break;
      ahead = Ahead();
    }
    const size_t length = std::min(rest.size(), ahead.size());
    std::memcpy(rest.data(), ahead.data(), length);
    position_ += length;
    done += length;
  }
  return done;
}

}  // namespace isozone
