#include "adapter/async_read.h"

#include <utility>

#include "adapter/status_mapping.h"

namespace isozone {

void ReadGroup::ReadAll(FileReader& reader, std::span<FileRead> reads) {
  ReadGroup group;
  {
    MutexLock lock(group.mu_);
    group.pending_ = reads.size();
  }
  for (FileRead& read : reads) {
    read.done = &ReadGroup::Done;
    read.context = &group;
    reader.Submit(read);
  }
  MutexLock lock(group.mu_);
  while (group.pending_ > 0) group.all_done_.Wait(group.mu_);
}

void ReadGroup::Done(FileRead& read) {
  auto& group = *static_cast<ReadGroup*>(read.context);
  MutexLock lock(group.mu_);  // held over Signal: the waiter destroys the group when it sees 0
  if (--group.pending_ == 0) group.all_done_.Signal();
}

AsyncRead::AsyncRead(FileReader& reader, const rocksdb::FSReadRequest& request, IoClass io_class, std::string path,
                     ReadAsyncCallback callback, void* callback_argument)
    : path_(std::move(path)), callback_(std::move(callback)), callback_argument_(callback_argument) {
  read_.offset = request.offset;
  read_.buffer = std::as_writable_bytes(std::span(request.scratch, request.len));
  read_.io_class = io_class;
  read_.done = &AsyncRead::Done;
  read_.context = this;
  reader.Submit(read_);
}

AsyncRead::~AsyncRead() { Wait(); }

void AsyncRead::Done(FileRead& read) {
  auto& self = *static_cast<AsyncRead*>(read.context);
  MutexLock lock(self.mu_);  // held over Signal: the waiter may destroy this when it sees is_done_
  self.is_done_ = true;
  self.done_.Signal();
}

void AsyncRead::Wait() {
  MutexLock lock(mu_);
  while (!is_done_) done_.Wait(mu_);
}

void AsyncRead::DeliverOnce(bool aborted) {
  Wait();
  if (std::exchange(delivered_, true)) return;
  auto* scratch = reinterpret_cast<char*>(read_.buffer.data());
  rocksdb::FSReadRequest answer;
  answer.offset = read_.offset;
  answer.len = read_.buffer.size();
  answer.scratch = scratch;
  answer.status = aborted ? rocksdb::IOStatus::Aborted("read aborted") : ToIoStatus(read_.status, path_);
  answer.result = rocksdb::Slice(scratch, answer.status.ok() ? read_.bytes_read : 0);
  callback_(answer, callback_argument_);
}

}  // namespace isozone
