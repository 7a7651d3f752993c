// The type of a file of RocksDB, according to its name, and the purpose of an access to it.
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
// The kind of a file says more about its lifetime than the hint does: wrappers of the file system drop the hint, and
// RocksDB gives one only to tables, blobs and WALs. So WALs never wait for a MANIFEST to die, nor tables without a hint
// for the info log, because no table gets the lifetime "none".
#pragma once

#include <string>

#include <rocksdb/env.h>

#include "rocksdb/adapter/rocksdb_version.h"
#include "store/file_type.h"
#include "store/io/io_class.h"
#include "store/zone/data_class.h"
#include "store/zone/lifetime.h"

namespace isozone {

// Returns `name` as an absolute path without "." and "..", and without a slash at the end.
std::string AbsolutePath(const std::string& name);

// All that RocksDB says about the reason of a read or write.
struct Intent {
  Activity activity = Activity::kUnknown;
  rocksdb::Env::IOPriority priority = rocksdb::Env::IO_TOTAL;
  rocksdb::Env::WriteLifeTimeHint hint = rocksdb::Env::WLTH_NOT_SET;
  int8_t job_level = DataClass::kNoLevel;  // of the flush (0) or compaction that the thread does (running_job.h)

  bool operator==(const Intent&) const = default;
};

// Returns the class of a write. For a table, the first of these decides that says something:
// 1. the activity
// 2. the priority: RocksDB flushes at high and compacts at low priority, but does both at user priority while writes
//    are stalled
// 3. the level of the thread's job
// 4. the hint: medium for flushes (and the first compacted level), longer for compactions, absent for files that the
//    user writes and where Isozone steers compaction
IoClass WriteClassOf(FileType type, const Intent& intent);
// Returns the class of a read. A table is read as the activity says. If that is unknown, a read at low priority or by a
// thread with a job is a read of a compaction.
IoClass ReadClassOf(FileType type, const Intent& intent);

Lifetime LifetimeOf(FileType type, rocksdb::Env::WriteLifeTimeHint hint);

}  // namespace isozone
