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

// The name of Isozone's listener in options, and that of its partitioner.
inline constexpr const char* kSteeringName = "isozone";
bool HasListener(const rocksdb::DBOptions& options);
bool HasPartitioner(const rocksdb::ColumnFamilyOptions& options);

inline constexpr uint32_t kDriverThreadsMax = 64;

// As many as RocksDB would use by max_background_jobs: a quarter of these is for flushes.
uint32_t DriverThreads(const rocksdb::DBOptions& options);

// What in the options of a database, and of a column family of it with kCompactionStyleNone, keeps a driver from
// compacting it, and what to change; empty: nothing.
std::string WhyNotDriven(const rocksdb::DBOptions& db_options, const rocksdb::ColumnFamilyOptions& options);

// Why no listener steers a database on that file system, and what to change; empty: one can.
std::string WhyTablesAreElsewhere(const rocksdb::FileSystem& file_system);
// InvalidArgument, with what to change, if no driver can compact the column family. `needs_cuts`: a partitioner of
// outputs is asked for.
rocksdb::Status CheckCanBeDriven(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, bool needs_cuts);
// Why a column family is not compacted.
rocksdb::Status NotDriven(const rocksdb::ColumnFamilyHandle& column_family, std::string_view why);
// Logs what RocksDB does by itself for other compaction styles, and nobody does here.
void WarnOfUnusedOptions(const rocksdb::Options& options, const std::string& column_family);

// What the options make of the tree.
SteeredShape ShapeOf(const rocksdb::Options& options, bool dynamic_levels);

}  // namespace isozone
