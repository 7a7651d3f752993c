// Finds the level of the LSM tree for which a table is written. RocksDB's file-system interface does not say; its
// lifetime hint merges all levels from the third below the base on, counts from the base, and is absent under universal
// compaction. Three sources, the best first:
//
//   listener     `listeners={isozone}`: told of each flush and each (sub)compaction on the thread that does it, before
//                it opens a table and after it has closed the last one. Exact.
//   partitioner  `sst_partitioner_factory=isozone`, of a column family: made once for each part of a compaction, and
//                asked before each key whether to begin another table (never). Exact for levels below 0, as RocksDB
//                makes none for compactions within level 0. Costs a call for each key; the listener does not.
//   hint         else: what is written for a flush is of level 0; medium, long and extreme lifetime are 1, 2 and 3.
//
// The first two leave the level in the RunningJob of the thread. The listener clears it at the end of a flush's table,
// of a subcompaction and of a compaction; the partitioner when RocksDB destroys it. Threads that RocksDB starts for
// further subcompactions end with them.
//
// Where RocksDB splits the output of a compaction over two levels (preclude_last_level_data_seconds), both count as the
// lower one, since neither source says which table goes where. A table that is moved down without being rewritten keeps
// the level that it was written for.
//
// The listener and partitioner that steer compaction (rocksdb/steering) derive from these two.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include <rocksdb/listener.h>
#include <rocksdb/sst_partitioner.h>

#include "store/io/io_class.h"
#include "store/zone/lifetime.h"

namespace isozone {

// Returns the level for which a table is written: `job_level` if it is known, else the level that class and hint
// suggest, else DataClass::kNoLevel.
int8_t TableLevel(int8_t job_level, IoClass io_class, Lifetime hint);

class LevelListener : public rocksdb::EventListener {
 public:
  // Only tables of flushes count here. OnFlushCompleted is not used, since it does not come after a flush that failed.
  void OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) override;
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override;
  // OnCompactionBegin is not used, since it comes on one thread only, however many write.
  void OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo& info) override;
  void OnSubcompactionCompleted(const rocksdb::SubcompactionJobInfo& info) override;
  // Clears the level too, because a subcompaction that fails early is not reported as completed.
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;

 protected:
  static bool IsFlush(rocksdb::TableFileCreationReason reason);
};

class LevelPartitioner : public rocksdb::SstPartitioner {
 public:
  // RocksDB calls this on the thread that begins the compaction, which also does the first part of it.
  explicit LevelPartitioner(int level);
  ~LevelPartitioner() override;
  LevelPartitioner(const LevelPartitioner&) = delete;
  LevelPartitioner& operator=(const LevelPartitioner&) = delete;

  const char* Name() const override { return "isozone"; }
  // RocksDB calls this on the thread that writes, from the second key of a table on, before its first block is
  // complete.
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest& request) override;
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return true; }

 private:
  const int level_;
};

}  // namespace isozone
