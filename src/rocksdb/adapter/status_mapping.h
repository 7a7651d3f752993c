// Converts Isozone's errors to RocksDB's, and keeps exceptions from reaching RocksDB.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include <rocksdb/io_status.h>

#include "base/status.h"

namespace isozone {

// The code and flags decide what RocksDB does next:
//   not found      PathNotFound, as from POSIX
//   no space       IOError/NoSpace, retryable: RocksDB resumes by itself once there is space
//   corruption     Corruption with data loss: writes stop, and no automatic recovery hides it
//   read-only      IOError, not retryable: until the file system is mounted again
//   other          IOError, not retryable: Isozone has retried what can be retried
// `path` (may be empty) precedes a message that does not contain it.
rocksdb::IOStatus ToIoStatus(const Status& status, std::string_view path);

// Converts the error of a call that takes the name of a file. The POSIX file system, which RocksDB expects, returns
// neither InvalidArgument nor Busy there: if a name is invalid, locked or being written, the result is an IOError.
rocksdb::IOStatus ToIoStatusOfName(const Status& status, std::string_view path);

// Returns body(), an IOStatus. If it throws, returns the exception as an IOStatus.
template <typename Body>
rocksdb::IOStatus WithoutExceptions(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return rocksdb::IOStatus::Aborted(rocksdb::IOStatus::kMemoryLimit);
  } catch (const std::exception& e) {
    return rocksdb::IOStatus::IOError("unexpected exception", e.what());
  } catch (...) {
    return rocksdb::IOStatus::IOError("unexpected exception");
  }
}

}  // namespace isozone
