// Reads in flight. RocksDB submits through ReadAsync or MultiRead on one thread; completions come on threads of the
// device and only mark the read done. RocksDB's callbacks run on the thread that waits, in Poll or AbortIO.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "adapter/rocksdb_version.h"
#include "base/mutex.h"
#include "fs/file_system.h"

namespace isozone {

// Submits reads of one file and waits for all of them.
class ReadGroup {
 public:
  // Each read of `reads` has offset, buffer and class set, and on return status and bytes_read.
  static void ReadAll(FileReader& reader, std::span<FileRead> reads);

 private:
  static void Done(FileRead& read);

  Mutex mu_;
  CondVar all_done_;
  size_t pending_ ISOZONE_GUARDED_BY(mu_) = 0;
};

// The io_handle of one ReadAsync. RocksDB destroys it only after Poll or AbortIO; the destructor waits nevertheless,
// because the device writes to the caller's memory until the read is done.
class AsyncRead {
 public:
  // Submits. `reader` and the request's memory must outlive this.
  AsyncRead(FileReader& reader, const rocksdb::FSReadRequest& request, IoClass io_class, std::string path,
            ReadAsyncCallback callback, void* callback_argument);
  ~AsyncRead();
  AsyncRead(const AsyncRead&) = delete;
  AsyncRead& operator=(const AsyncRead&) = delete;

  // Waits for the read, then calls the callback, the first time it is called.
  void Deliver() { DeliverOnce(/*aborted=*/false); }
  // As Deliver, but tells the callback that the read was aborted. The device is waited for: it cannot be told to stop.
  void Abort() { DeliverOnce(/*aborted=*/true); }

 private:
  static void Done(FileRead& read);
  void Wait() ISOZONE_EXCLUDES(mu_);
  void DeliverOnce(bool aborted);

  const std::string path_;
  const ReadAsyncCallback callback_;
  void* const callback_argument_;
  bool delivered_ = false;

  Mutex mu_;
  CondVar done_;
  bool is_done_ ISOZONE_GUARDED_BY(mu_) = false;
  FileRead read_;  // the device's until is_done_
};

}  // namespace isozone
