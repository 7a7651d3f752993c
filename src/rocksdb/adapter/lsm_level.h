// Which level of the LSM tree a table is written for. RocksDB's file-system interface does not say; its lifetime hint
// merges all levels from the third below the base on, counts from the base, and is absent under universal compaction.
// Three sources, the best first:
//
//   listener     `listeners={isozone}`: told of each flush and each (sub)compaction on the thread that does it, before
//                it opens a table and after it has closed the last one. Exact.
//   partitioner  `sst_partitioner_factory=isozone`, of a column family: made once for each part of a compaction, and
//                asked before each key whether to begin another table (never). Exact for levels below 0, as RocksDB
//                makes none for compactions within level 0. Costs a call for each key; the listener does not.
//   hint         else: what is written for a flush is of level 0; medium, long and extreme lifetime are 1, 2 and 3.
//
// The first two leave the level in the RunningJob of the thread. The listener clears it at the end of a flush's table, a
// subcompaction and a compaction; the partitioner when RocksDB destroys it. Threads that RocksDB starts for further
// subcompactions end with them.
//
// Where RocksDB splits the output of a compaction over two levels (preclude_last_level_data_seconds), both count as the
// lower one, since neither source says which table goes where. A table that is moved down without being rewritten keeps
// the level that it was written for.
//
// Both also take part in steering. The listener has the options for it, hears when the default column family goes, and
// lets the thread that opens a database know of itself (steered_databases.h). The partitioner cuts outputs where the
// picker says, and refuses to open a database that would be neither steered nor compacted by RocksDB.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include <rocksdb/listener.h>
#include <rocksdb/sst_partitioner.h>
#include <rocksdb/utilities/object_registry.h>

#include "rocksdb/adapter/opening_database.h"
#include "store/io/io_class.h"
#include "store/zone/lifetime.h"

namespace isozone {

// `job_level` where it is known, else what class and hint make of it; DataClass::kNoLevel: nothing.
int8_t TableLevel(int8_t job_level, IoClass io_class, Lifetime hint);

class LevelListener : public rocksdb::EventListener {
 public:
  static const char* kClassName() { return "isozone"; }
  // Whether a database has one.
  static bool IsIn(const rocksdb::DBOptions& options);
  // The first that steers a database; null: none does.
  static const LevelListener* SteeringIn(const rocksdb::DBOptions& options);

  LevelListener();
  const char* Name() const override { return kClassName(); }

  // Of flushes; OnFlushCompleted would not come after one that failed.
  void OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) override;
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override;
  // OnCompactionBegin would come on one thread only, however many write.
  void OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo& info) override;
  void OnSubcompactionCompleted(const rocksdb::SubcompactionJobInfo& info) override;
  // A subcompaction that fails early is not reported as completed.
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  // A driver of the column family may hold it back (column_family_driver.h).
  void OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  // Drivers of the DB look at its tree again (column_family_driver.h).
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) override;
  // RocksDB's own handle of the default column family goes when the database closes.
  void OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) override;
  // It does not want to be notified. RocksDB asks on the thread that has opened a file, for each listener.
  bool ShouldBeNotifiedOnFileIO() override;

 protected:
  // Names the options that there are where another is given; RocksDB would name the word "listeners" alone.
  rocksdb::Status ConfigureOptions(const rocksdb::ConfigOptions& config,
                                   const std::unordered_map<std::string, std::string>& options,
                                   std::unordered_map<std::string, std::string>* unused) override;

 private:
  SteeringOptions steering_;  // set while options are read, before there is a database
};

class LevelPartitionerFactory : public rocksdb::SstPartitionerFactory {
 public:
  static const char* kClassName() { return "isozone"; }
  // Whether a column family has it.
  static bool IsIn(const rocksdb::ColumnFamilyOptions& options);
  const char* Name() const override { return kClassName(); }
  // DB::Open asks it. Where Isozone's listener is missing, a line in Isozone's log says what that means.
  rocksdb::Status ValidateOptions(const rocksdb::DBOptions& db_options,
                                  const rocksdb::ColumnFamilyOptions& options) const override;
  // Null where the level is not known: RocksDB then asks nobody.
  std::unique_ptr<rocksdb::SstPartitioner> CreatePartitioner(
      const rocksdb::SstPartitioner::Context& context) const override;
};

// Makes RocksDB know both by their names in options.
void RegisterLevelSources(rocksdb::ObjectLibrary& library);

}  // namespace isozone
