// The differences between the RocksDB versions that Isozone supports (7.8 to 11.8), in one place. No other file checks
// the version.
//
// A file in this folder must not have the name of a header of RocksDB: src/ is searched before RocksDB's include
// folder.
#pragma once

#include <functional>
#include <type_traits>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/version.h>

#define ISOZONE_ROCKSDB_AT_LEAST(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

static_assert(ISOZONE_ROCKSDB_AT_LEAST(7, 8), "Isozone needs RocksDB 7.8 or newer");

// FileSystem::SupportedOps.
#define ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS ISOZONE_ROCKSDB_AT_LEAST(8, 4)
// FileSystem::SyncFile.
#define ISOZONE_ROCKSDB_HAS_SYNC_FILE ISOZONE_ROCKSDB_AT_LEAST(11, 8)
// FSRandomAccessFile::GetFileSize.
#define ISOZONE_ROCKSDB_HAS_READER_FILE_SIZE ISOZONE_ROCKSDB_AT_LEAST(10, 5)

namespace isozone {

// The callback of FSRandomAccessFile::ReadAsync; its request became mutable in RocksDB 8.
template <typename Method>
struct ReadAsyncCallbackOf;
template <typename Callback, typename... Rest>
struct ReadAsyncCallbackOf<rocksdb::IOStatus (rocksdb::FSRandomAccessFile::*)(
    rocksdb::FSReadRequest&, const rocksdb::IOOptions&, Callback, Rest...)> {
  using Type = Callback;
};
using ReadAsyncCallback = ReadAsyncCallbackOf<decltype(&rocksdb::FSRandomAccessFile::ReadAsync)>::Type;

// Lets CompactFiles move tables that overlap nothing to the next level without writing them anew. Does nothing where
// RocksDB cannot (before 10.8).
template <typename Options>
void AllowTrivialMove(Options& options) {
  if constexpr (requires { options.allow_trivial_move; }) options.allow_trivial_move = true;
}

// The purpose of a read or write of RocksDB. Always kUnknown before IOOptions::io_activity (RocksDB 8).
enum class Activity : uint8_t { kUnknown, kFlush, kCompaction, kUser, kVerification };

template <typename Options>
Activity ActivityOf(const Options& options) {
  if constexpr (requires { options.io_activity; }) {
    using IOActivity = std::remove_cvref_t<decltype(options.io_activity)>;
    switch (options.io_activity) {
      case IOActivity::kFlush:
        return Activity::kFlush;
      case IOActivity::kCompaction:
        return Activity::kCompaction;
      case IOActivity::kUnknown:
        return Activity::kUnknown;
      case IOActivity::kVerifyDBChecksum:
      case IOActivity::kVerifyFileChecksums:
        return Activity::kVerification;
      default:
        return Activity::kUser;
    }
  } else {
    return Activity::kUnknown;
  }
}

// The lifetime hint with which a file is opened. Older versions give it only afterwards, by SetWriteLifeTimeHint.
template <typename Options>
rocksdb::Env::WriteLifeTimeHint OpeningHint(const Options& options) {
  if constexpr (requires { options.write_hint; }) {
    return options.write_hint;
  } else {
    return rocksdb::Env::WLTH_NOT_SET;
  }
}

}  // namespace isozone
