// Reads in flight. RocksDB submits through ReadAsync or MultiRead on one thread. Completions come on threads of the
// device, and only mark the read as done. RocksDB's callbacks run on the thread that waits, in Poll or AbortIO.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "base/latch.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "store/file_system.h"

namespace isozone {

// Submits reads of one file and waits for all of them. In each read of `reads`, offset, buffer and class must be set;
// status and bytes_read are set on return.
void ReadAll(FileReader& reader, std::span<FileRead> reads);

// The io_handle of one ReadAsync. RocksDB destroys it only after Poll or AbortIO. The destructor waits nevertheless,
// because the device writes to the caller's memory until the read is done.
class AsyncRead {
 public:
  // Submits the read. `reader` and the memory of the request must outlive this object.
  AsyncRead(FileReader& reader, const rocksdb::FSReadRequest& request, IoClass io_class, std::string path,
            ReadAsyncCallback callback, void* callback_argument);
  AsyncRead(const AsyncRead&) = delete;
  AsyncRead& operator=(const AsyncRead&) = delete;

  // Waits for the read. The first call then calls the callback.
  void Deliver() { DeliverOnce(/*aborted=*/false); }
  // Like Deliver, but tells the callback that the read was aborted. It waits for the device, which cannot stop a read.
  void Abort() { DeliverOnce(/*aborted=*/true); }

 private:
  void DeliverOnce(bool aborted);

  const std::string path_;
  const ReadAsyncCallback callback_;
  void* const callback_argument_;
  bool delivered_ = false;

  FileRead read_;  // the device may access it until done_ is down
  Latch done_;
};

// Poll and AbortIO on handles of ReadAsync: they wait for each read and call its callback. A null handle is skipped.
rocksdb::IOStatus DeliverReads(const std::vector<void*>& io_handles);
rocksdb::IOStatus AbortReads(const std::vector<void*>& io_handles);

}  // namespace isozone
