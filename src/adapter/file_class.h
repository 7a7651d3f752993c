// What RocksDB's files are, told from their names, and what an access to one is for.
//
//   name                        type      kind   lifetime  written as                      read as
//   NNN.log                     wal       log    short     wal                             wal
//   MANIFEST-NNN                manifest  log    long      metadata                        metadata
//   CURRENT                     current   small  none      metadata                        metadata
//   NNN.sst NNN.ldb NNN.blob    table     data   the hint  flush, compaction-write, other  user-read, compaction-read,
//                                                                                          flush, other
//   IDENTITY LOCK LOG* OPTIONS-* NNN.dbtmp
//                               small     small  none      other                           other
//   everything else             other     data   the hint  other                           other
//
// What a file is says more of its lifetime than the hint, which wrappers of the file system drop, and which RocksDB gives
// to no file but tables, blobs and WALs. So WALs never wait for a MANIFEST to die, nor tables without a hint for the info
// log: no table is given the lifetime "none".
#pragma once

#include <string_view>

#include <rocksdb/env.h>

#include "adapter/rocksdb_version.h"
#include "fs/file_system.h"
#include "io/io_class.h"
#include "zone/lifetime.h"

namespace isozone {

enum class FileType : uint8_t { kWal, kManifest, kCurrent, kTable, kSmall, kOther };

// By the last component of `path`.
FileType FileTypeOf(std::string_view path);
FileKind FileKindOf(FileType type);

// All that RocksDB says of why it reads or writes.
struct Intent {
  Activity activity = Activity::kUnknown;
  rocksdb::Env::IOPriority priority = rocksdb::Env::IO_TOTAL;
  rocksdb::Env::WriteLifeTimeHint hint = rocksdb::Env::WLTH_NOT_SET;

  bool operator==(const Intent&) const = default;
};

// The activity decides where it is known. Else the priority: RocksDB flushes at high and compacts at low priority, but
// does both at user priority while writes are stalled; then the hint, which is medium for flushes (and for the first
// compacted level), longer for compactions, and absent for files that the user writes.
IoClass WriteClassOf(FileType type, const Intent& intent);
// The activity, else the priority: compactions read at low priority.
IoClass ReadClassOf(FileType type, const Intent& intent);

Lifetime LifetimeOf(FileType type, rocksdb::Env::WriteLifeTimeHint hint);

}  // namespace isozone
