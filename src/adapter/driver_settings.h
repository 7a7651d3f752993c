// What the options of a database and of a column family say to a ColumnFamilyDriver: whether it can work, and within
// which limits. Options that SetOptions changes take effect with the next flush or compaction.
//
// Thread safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include "lsm/compaction_debt.h"
#include "lsm/lsm_limits.h"

namespace isozone {

inline constexpr uint32_t kDriverThreadsMax = 64;

// As many as RocksDB would use by max_background_jobs: a quarter of these is for flushes.
uint32_t DriverThreads(const rocksdb::DBOptions& options);

// What in the options of a column family with kCompactionStyleNone keeps a driver from compacting it, and what to change;
// empty: nothing.
std::string WhyNotDriven(const rocksdb::ColumnFamilyOptions& options);

// InvalidArgument, with what to change, if no driver can compact the column family. `needs_cuts`: a partitioner of outputs
// is asked for.
rocksdb::Status CheckCanBeDriven(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, bool needs_cuts);
// Why a column family is not compacted.
rocksdb::Status NotDriven(const rocksdb::ColumnFamilyHandle& column_family, std::string_view why);
// Logs what RocksDB does by itself for other compaction styles, and nobody does here.
void WarnOfUnusedOptions(const rocksdb::Options& options, const std::string& column_family);

struct DriverSettings {
  explicit DriverSettings(const rocksdb::Options& options);

  // With the levels that a tree is to have of which each level holds so many bytes now. `dynamic`: from the last level
  // up. `free_bytes`: of the device, at most 2^63. Where compactions need more, all levels but the last are smaller; and the
  // less there are, the less is compacted at a time.
  LsmLimits LimitsFor(std::span<const uint64_t> bytes, bool dynamic, uint64_t free_bytes) const;

  // Free space in which two compactions find room one beside the other: of level 0 into the base level, and of a table
  // into the next level. `bytes`: what each level holds.
  uint64_t BytesForCompactions(std::span<const uint64_t> bytes, int base_level) const;

  int levels = 0;
  uint64_t level_base_bytes = 0;
  double level_factor = 0;
  uint32_t level0_files = 0;
  uint64_t table_bytes = 0;
  uint64_t memtable_bytes = 0;
  CompactionDebtLimits debt;
  bool compacts = true;  // not disable_auto_compactions
};

}  // namespace isozone
