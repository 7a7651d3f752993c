#include "rocksdb/adapter/async_read.h"

#include <utility>

#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

void ReadAll(FileReader& reader, std::span<FileRead> reads) {
  Latch latch;
  for (FileRead& read : reads) {
    latch.Expect(read);
    reader.Submit(read);
  }
  latch.Wait();
  for (FileRead& read : reads) read.Take();
}

AsyncRead::AsyncRead(FileReader& reader, const rocksdb::FSReadRequest& request, IoClass io_class, std::string path,
                     ReadAsyncCallback callback, void* callback_argument)
    : path_(std::move(path)), callback_(std::move(callback)), callback_argument_(callback_argument) {
  read_.offset = request.offset;
  read_.buffer = std::as_writable_bytes(std::span(request.scratch, request.len));
  read_.io_class = io_class;
  done_.Expect(read_);
  reader.Submit(read_);
}

void AsyncRead::DeliverOnce(bool aborted) {
  done_.Wait();
  if (std::exchange(delivered_, true)) return;
  read_.Take();
  auto* scratch = reinterpret_cast<char*>(read_.buffer.data());
  rocksdb::FSReadRequest answer;
  answer.offset = read_.offset;
  answer.len = read_.buffer.size();
  answer.scratch = scratch;
  answer.status = aborted ? rocksdb::IOStatus::Aborted("read aborted") : ToIoStatus(read_.status, path_);
  answer.result = rocksdb::Slice(scratch, answer.status.ok() ? read_.bytes_read : 0);
  callback_(answer, callback_argument_);
}

rocksdb::IOStatus DeliverReads(const std::vector<void*>& io_handles) {
  return WithoutExceptions([&] {
    for (void* handle : io_handles) {
      if (handle != nullptr) static_cast<AsyncRead*>(handle)->Deliver();  // null: read at once
    }
    return rocksdb::IOStatus::OK();
  });
}

rocksdb::IOStatus AbortReads(const std::vector<void*>& io_handles) {
  return WithoutExceptions([&] {
    for (void* handle : io_handles) {
      if (handle != nullptr) static_cast<AsyncRead*>(handle)->Abort();  // null: read at once
    }
    return rocksdb::IOStatus::OK();
  });
}

}  // namespace isozone
