// Compacts a RocksDB column family as a picker of src/rocksdb/lsm says, from outside, by DB::CompactFiles.
//
// What it knows of the tree, and what may begin there, is a SteeredTree; which flushes wait and run is in HeldFlushes.
// The driver runs what they say. What was picked from an older view of the tree is refused by RocksDB ("Aborted",
// "InvalidArgument") and picked anew.
//
// Pauses. After a compaction that was refused or has failed, none begins for kPauseNs, and for twice as long after each
// further one, up to kPauseMostNs. A flush, and whoever waits for the driver, end the pause. While the column family
// has disable_auto_compactions=true, no compaction begins at all. A TransactionDB sets that while it is being opened,
// because compactions must not look at prepared values before it can tell which are committed.
//
// Threads. As many as asked for. Each picks, marks its inputs busy, compacts without a lock, and brings the tree up to
// date. The DB calls OnFlushCompleted through SteeringListener, which only sets a flag (Wake).
//
// The DB must outlive the driver: a program destroys the driver first, and SteeredDatabases stops it when RocksDB tells
// that the DB closes. That takes as long as the compactions which run.
//
// Compaction pointers are kept in a file in the folder of the database, ISOZONE-COMPACTION-ID, which RocksDB leaves
// alone. It is written from time to time and at the end. A sweep that begins at an older pointer does some work twice.
//
// Stalls. With kCompactionStyleNone RocksDB itself slows down and stops writers by level0_slowdown_writes_trigger and
// level0_stop_writes_trigger. The driver bounds the compaction debt, by soft_ and hard_pending_compaction_bytes_limit:
// the listener holds flushes back until compactions have written enough (rocksdb/lsm/compaction_debt.h). Nothing holds
// a flush while the driver stops or pauses, where no compaction can be picked, or where none has ended for
// kLongestHoldNs. A flush that may begin goes before the next compaction, and beside one that writes a compaction
// begins only if both find room. A flush that is overdue waits only for what runs (rocksdb/lsm/steered_shape.h).
//
// Lock order: store_mu_, then mu_, then the DB's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/status.h>

#include "base/mutex.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/key_order.h"
#include "rocksdb/steering/driver_settings.h"
#include "rocksdb/steering/driver_stats.h"
#include "rocksdb/steering/held_flushes.h"
#include "rocksdb/steering/steered_tree.h"

namespace isozone {

struct ColumnFamilyDriverOptions {
  std::string picker = "isozone";  // a name that MakeCompactionPicker knows
  uint32_t threads = 1;            // 1 to kDriverThreadsMax
  bool t_zone = true;              // short-lived outputs have zones of their own (output_guide.h)
  bool dynamic_levels = true;      // levels are sized from the last one up (LsmLimits::FromLastLevel)
  // Without sst_partitioner_factory=isozone, outputs are cut by their size only. False: that will do.
  bool needs_cuts = true;
};

class ColumnFamilyDriver {
 public:
  static constexpr int64_t kPauseNs = 1'000'000;
  static constexpr int64_t kPauseMostNs = 500'000'000;

  // Begins to compact `column_family` of `db`; both must outlive the driver. InvalidArgument with what to change: it
  // has another compaction style than kCompactionStyleNone, fewer than 3 levels, no `listeners={isozone}`, no
  // `sst_partitioner_factory=isozone` where cuts are needed, or a driver already; or the options are not known.
  static rocksdb::Status Open(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                              const ColumnFamilyDriverOptions& options, std::unique_ptr<ColumnFamilyDriver>* result);
  // Stops, unless it has been stopped.
  ~ColumnFamilyDriver();
  ColumnFamilyDriver(const ColumnFamilyDriver&) = delete;
  ColumnFamilyDriver& operator=(const ColumnFamilyDriver&) = delete;

  // Waits for the compactions that run; no other begins. Called once.
  void Stop();

  // Something may have changed in `db`, the innermost of wrapped ones. Any thread; no driver may be of it.
  static void Wake(const rocksdb::DB* db);

  // A flush is about to begin: waits, if it may, as long as there is too much compaction debt. Any thread that holds no
  // lock of RocksDB; no driver may be of it.
  static void BeginFlush(const FlushJob& flush, bool may_wait);
  // How far the flush has come. The same threads.
  static void NoteFlush(const FlushJob& flush, FlushStep step);

  // Waits until the tree of this moment leaves nothing to compact, or the driver cannot go on: why. Incomplete: it is
  // paused.
  rocksdb::Status WaitUntilIdle();
  ColumnFamilyDriverStats Stats() const;

 private:
  ColumnFamilyDriver(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                     std::unique_ptr<CompactionPicker> picker, const ColumnFamilyDriverOptions& options);

  using Compaction = SteeredTree::Compaction;

  // Calls act(ColumnFamilyDriver&) for those of `db`, which do not end meanwhile.
  template <typename Act>
  static void ForEachOf(const rocksdb::DB* db, Act&& act);
  void Run();
  // What is to be done next, marked as begun; waits for it. False: the driver stops.
  bool Next(Compaction& next);
  // The same without waiting. False: nothing can be begun now.
  bool Begin(Compaction& next) ISOZONE_REQUIRES(mu_);
  rocksdb::Status Compact(const Compaction& compaction, std::vector<std::string>* outputs);
  // Whether the pointers are to be stored.
  bool Finish(const Compaction& done, const rocksdb::Status& status, const std::vector<std::string>& outputs);
  void NoteFailure(const rocksdb::Status& status) ISOZONE_REQUIRES(mu_);
  // The next compaction is tried at once, whatever the last one met.
  void EndPause() ISOZONE_REQUIRES(mu_);
  void AwaitCompactions() ISOZONE_REQUIRES(mu_);
  // Whether a flush may begin for which compactions have written so many bytes.
  bool MayFlush(uint64_t written) ISOZONE_REQUIRES(mu_);
  // Brings the tree up to date.
  void Reconcile() ISOZONE_REQUIRES(mu_);
  // Of the device, with what the collector can give back; of a file system that is not Isozone's, more than can be
  // used.
  uint64_t FreeBytes() const;
  // Zones that short-lived tables have for themselves now.
  uint32_t TZones() const;
  void StorePointers() const ISOZONE_EXCLUDES(mu_);
  std::string PointersPath() const;

  rocksdb::DB* const db_;
  const rocksdb::DB* const root_;  // what events name: the innermost of wrapped databases
  rocksdb::ColumnFamilyHandle* const column_family_;
  const std::unique_ptr<KeyOrder> order_;
  const bool dynamic_levels_;
  const uint64_t t_zone_;  // the cohort of short-lived tables; 0: none

  mutable Mutex mu_;
  CondVar changed_;  // for all: something to do, or done
  SteeredTree tree_ ISOZONE_GUARDED_BY(mu_);
  HeldFlushes flushes_ ISOZONE_GUARDED_BY(mu_);
  bool stale_ ISOZONE_GUARDED_BY(mu_) = true;  // the tree may have changed
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  uint32_t flush_threads_ ISOZONE_GUARDED_BY(mu_) = 0;   // that are in BeginFlush now; Stop waits for them
  rocksdb::Status failure_ ISOZONE_GUARDED_BY(mu_);      // of the last compaction, during the pause after it
  int64_t retry_at_ns_ ISOZONE_GUARDED_BY(mu_) = 0;      // the end of a pause; 0: there is none
  int64_t pause_ns_ ISOZONE_GUARDED_BY(mu_) = kPauseNs;  // how long the next pause will be
  ColumnFamilyDriverStats stats_ ISOZONE_GUARDED_BY(mu_);

  mutable Mutex store_mu_;  // one writes the pointers; before mu_

  bool registered_ = false;           // touched by Open and Stop only
  std::vector<std::thread> threads_;  // touched by Open and Stop only
};

}  // namespace isozone
