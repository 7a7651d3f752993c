// Reads in flight. RocksDB submits through ReadAsync or MultiRead on one thread; completions come on threads of the
// device and only mark the read done. RocksDB's callbacks run on the thread that waits, in Poll or AbortIO.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "adapter/rocksdb_version.h"
#include "base/latch.h"
#include "fs/file_system.h"

namespace isozone {

// Submits reads of one file and waits for all of them. Each read of `reads` has offset, buffer and class set, and on
// return status and bytes_read.
void ReadAll(FileReader& reader, std::span<FileRead> reads);

// The io_handle of one ReadAsync. RocksDB destroys it only after Poll or AbortIO; its end waits nevertheless,
// because the device writes to the caller's memory until the read is done.
class AsyncRead {
 public:
  // Submits. `reader` and the request's memory must outlive this.
  AsyncRead(FileReader& reader, const rocksdb::FSReadRequest& request, IoClass io_class, std::string path,
            ReadAsyncCallback callback, void* callback_argument);
  AsyncRead(const AsyncRead&) = delete;
  AsyncRead& operator=(const AsyncRead&) = delete;

  // Waits for the read, then calls the callback, the first time it is called.
  void Deliver() { DeliverOnce(/*aborted=*/false); }
  // As Deliver, but tells the callback that the read was aborted. The device is waited for: it cannot be told to stop.
  void Abort() { DeliverOnce(/*aborted=*/true); }

 private:
  void DeliverOnce(bool aborted);

  const std::string path_;
  const ReadAsyncCallback callback_;
  void* const callback_argument_;
  bool delivered_ = false;

  FileRead read_;  // the device's until done_ is down
  Latch done_;
};

}  // namespace isozone
