// SteeringListener is the listener of an options file, `listeners={id=isozone;compaction=ll}`. It tells levels, as
// LevelListener does. It tells the drivers of column families of flushes, and of whatever else may have changed their
// trees. With an option compaction=, it steers the database that it belongs to (steered_databases.h).
//
// Thread safety: any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include <rocksdb/listener.h>

#include "rocksdb/adapter/lsm_level.h"
#include "rocksdb/steering/column_family_driver.h"
#include "rocksdb/steering/driver_settings.h"

namespace isozone {

class SteeringListener : public LevelListener {
 public:
  static const char* kClassName() { return kSteeringName; }
  static constexpr std::string_view kNone = "none";  // in place of a picker: only levels are told
  // Returns the first listener of `options` that steers; null if none does.
  static const SteeringListener* In(const rocksdb::DBOptions& options);

  SteeringListener();
  const char* Name() const override { return kClassName(); }

  void OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) override;
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  // Holds the flush back as long as a driver of its column family says (column_family_driver.h).
  void OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) override;
  // Stops the driver of a database that closes: RocksDB then destroys its own handle of the default column family.
  void OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) override;
  // Returns false: the listener wants no events of files. RocksDB asks on the thread that has opened one, from which
  // opening_database.h learns which database is being opened.
  bool ShouldBeNotifiedOnFileIO() override;

 protected:
  // Refuses an unknown option, and names those that there are. RocksDB would name the word "listeners" alone.
  rocksdb::Status ConfigureOptions(const rocksdb::ConfigOptions& config,
                                   const std::unordered_map<std::string, std::string>& options,
                                   std::unordered_map<std::string, std::string>* unused) override;

 private:
  bool steers() const { return steering_.picker != kNone; }

  // The settings of an options file (docs/steering.md), before there is a database. 0 threads stand for as many as
  // RocksDB would use.
  ColumnFamilyDriverOptions steering_ = {.picker = std::string(kNone), .threads = 0, .needs_cuts = false};
};

}  // namespace isozone
