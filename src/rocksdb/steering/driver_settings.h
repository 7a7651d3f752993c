// What the options of a database and of a column family say to a ColumnFamilyDriver: whether it can work, and within
// which limits. Options that SetOptions changes take effect with the next flush or compaction.
//
// Thread safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rocksdb/db.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include "rocksdb/lsm/steered_shape.h"

namespace isozone {

// The name that Isozone's listener and its partitioner both have in options; and whether options have them.
inline constexpr const char* kSteeringName = "isozone";
bool HasListener(const rocksdb::DBOptions& options);
bool HasPartitioner(const rocksdb::ColumnFamilyOptions& options);

inline constexpr uint32_t kDriverThreadsMax = 64;

// Returns how many threads a driver has if nobody says: three quarters of max_background_jobs, as many as RocksDB would
// use for compactions.
uint32_t DriverThreads(const rocksdb::DBOptions& options);

// Returns what in the options of a database, or of a column family of it with kCompactionStyleNone, keeps a driver from
// compacting that, and what to change; empty if nothing does.
std::string WhyNotDriven(const rocksdb::DBOptions& db_options, const rocksdb::ColumnFamilyOptions& options);

// Returns why no listener can steer a database on that file system, and what to change; empty if one can.
std::string WhyTablesAreElsewhere(const rocksdb::FileSystem& file_system);
// Returns InvalidArgument, with what to change, if no driver can compact the column family. `needs_cuts` asks for
// Isozone's partitioner as well, without which outputs are not cut where the picker says.
rocksdb::Status CheckCanBeDriven(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, bool needs_cuts);
// Returns an InvalidArgument that names the column family, and says why no driver compacts it.
rocksdb::Status NotDriven(const rocksdb::ColumnFamilyHandle& column_family, std::string_view why);
// Logs a warning if the options ask for compactions by age (ttl, periodic_compaction_seconds), which RocksDB begins by
// itself for other compaction styles, and nobody does here.
void WarnOfUnusedOptions(const rocksdb::Options& options, const std::string& column_family);

// Returns the shape that the options give to the tree: its levels, the sizes of tables and memtables, and the debt.
SteeredShape ShapeOf(const rocksdb::Options& options, bool dynamic_levels);

}  // namespace isozone
