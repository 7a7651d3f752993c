// ColumnFamilyDriver compacts a RocksDB column family as a picker of src/rocksdb/lsm says, from outside, by
// DB::CompactFiles.
//
// A SteeredTree holds what the driver knows of the tree, and decides what may begin there; HeldFlushes knows which
// flushes wait and run. The driver executes their decisions. RocksDB refuses what was picked from an older view of the
// tree ("Aborted", "InvalidArgument"); it is picked anew.
//
// Pauses. After a compaction that was refused or has failed, none begins for kPauseNs, and for twice as long after each
// further one, up to kPauseMostNs. A flush, and whoever waits for the driver, end the pause. While the column family
// has disable_auto_compactions=true, no compaction begins at all. A TransactionDB sets that while it is being opened,
// because compactions must not look at prepared values before it can tell which are committed.
//
// Threads. A driver has as many as its options say. Each picks, marks its inputs busy, compacts without a lock, and
// brings the tree up to date. The DB calls OnFlushCompleted through SteeringListener, which only sets a flag (Wake).
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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/status.h>

#include "base/clock.h"
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
  // Whether Open refuses a column family without sst_partitioner_factory=isozone, whose outputs are cut by size only.
  bool needs_cuts = true;
  Clock* clock = &Clock::Real();  // outlives the driver; not null
};

class ColumnFamilyDriver {
 public:
  static constexpr int64_t kPauseNs = 1'000'000;
  static constexpr int64_t kPauseMostNs = 500'000'000;

  // Makes a driver that compacts `column_family` of `db` from now on; both must outlive it. Returns InvalidArgument,
  // with what to change, if the column family cannot be compacted from outside (CheckCanBeDriven in driver_settings.h
  // knows why) or has a driver already, or if an option has no such value.
  static rocksdb::Status Open(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                              const ColumnFamilyDriverOptions& options, std::unique_ptr<ColumnFamilyDriver>* result);
  // Stops the driver, unless Stop was called.
  ~ColumnFamilyDriver();
  ColumnFamilyDriver(const ColumnFamilyDriver&) = delete;
  ColumnFamilyDriver& operator=(const ColumnFamilyDriver&) = delete;

  // Stops the driver: no other compaction begins, and the call returns when those that run have ended. It is called at
  // most once.
  void Stop();

  // Tells the drivers of `db`, the innermost of wrapped databases, that its trees may have changed. Any thread may call
  // this, also where the database has no driver.
  static void Wake(const rocksdb::DB* db);

  // Is called before a flush begins. Waits, if the flush `may_wait`, as long as there is too much compaction debt. Any
  // thread that holds no lock of RocksDB may call this, also where the database has no driver.
  static void BeginFlush(const FlushJob& flush, bool may_wait);
  // Tells the drivers of the flush's database how far the flush has come. The same threads may call this.
  static void NoteFlush(const FlushJob& flush, FlushStep step);

  // Waits until no compaction runs and either nothing is left to compact, or the driver pauses. Returns OK, or why it
  // pauses: the error of a compaction, or Incomplete for disable_auto_compactions=true. ShutdownInProgress: it stops.
  rocksdb::Status WaitUntilIdle();
  ColumnFamilyDriverStats Stats() const;

 private:
  ColumnFamilyDriver(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                     std::unique_ptr<CompactionPicker> picker, const ColumnFamilyDriverOptions& options);

  using Compaction = SteeredTree::Compaction;

  // Calls act(ColumnFamilyDriver&) for each driver of `db`. None of them ends meanwhile.
  template <typename Act>
  static void ForEachOf(const rocksdb::DB* db, Act&& act);
  // Compacts until the driver stops: what each of its threads does.
  void Run();
  // Waits for the next compaction that may begin, and marks it as begun. Returns false if the driver stops.
  bool Next(Compaction& next);
  // Does the same without waiting, beside so many flushes that run. Returns false if no compaction may begin now.
  bool Begin(Compaction& next, size_t flushes) ISOZONE_REQUIRES(mu_);
  // Has RocksDB execute a compaction; `outputs` become the paths of the tables that it has made.
  rocksdb::Status Compact(const Compaction& compaction, std::vector<std::string>* outputs);
  // Brings the tree and the counters up to date after a compaction. Returns whether the pointers are to be stored.
  bool Finish(const Compaction& done, const rocksdb::Status& status, const std::vector<std::string>& outputs);
  // Counts a compaction that was refused or has failed, and begins a pause; or stops, if the column family goes.
  void NoteFailure(const rocksdb::Status& status) ISOZONE_REQUIRES(mu_);
  // Ends the pause: the next compaction is tried at once, whatever the last one met.
  void EndPause() ISOZONE_REQUIRES(mu_);
  // Waits until a flush of the column family may begin, or no compaction has ended for kLongestHoldNs.
  void AwaitCompactions() ISOZONE_REQUIRES(mu_);
  // Returns whether a flush may begin, where compactions have written `written` bytes while it waited.
  bool MayFlush(uint64_t written) ISOZONE_REQUIRES(mu_);
  // Brings the tree up to date with RocksDB's metadata and options; pauses while disable_auto_compactions=true.
  void Reconcile() ISOZONE_REQUIRES(mu_);
  // Returns what compactions have written, those that run included. It falls where one fails.
  uint64_t WrittenBytes() const ISOZONE_REQUIRES(mu_) { return stats_.bytes_written + tree_.running_written_bytes(); }
  // Returns the free bytes of the device, with those that the collector can give back; for a file system that is not
  // Isozone's, more than can be used.
  uint64_t FreeBytes() const;
  // Returns how many zones short-lived tables have for themselves now.
  uint32_t TZones() const;
  // Writes the compaction pointers to the file at PointersPath().
  void StorePointers() const ISOZONE_EXCLUDES(mu_);
  std::string PointersPath() const;

  rocksdb::DB* const db_;
  const rocksdb::DB* const root_;  // what events name: the innermost of wrapped databases
  rocksdb::ColumnFamilyHandle* const column_family_;
  const std::unique_ptr<KeyOrder> order_;
  Clock& clock_;
  const bool dynamic_levels_;
  const uint64_t t_zone_;  // the cohort of short-lived tables; 0: none

  mutable Mutex mu_;
  CondVar changed_;  // signalled when there is something to do, or something was done; every thread waits for it
  SteeredTree tree_ ISOZONE_GUARDED_BY(mu_);
  HeldFlushes flushes_ ISOZONE_GUARDED_BY(mu_);
  bool stale_ ISOZONE_GUARDED_BY(mu_) = true;  // the tree may have changed since Reconcile
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  uint32_t flush_threads_ ISOZONE_GUARDED_BY(mu_) = 0;   // threads in BeginFlush; Stop waits for them
  rocksdb::Status failure_ ISOZONE_GUARDED_BY(mu_);      // of the last compaction, during the pause after it
  int64_t retry_at_ns_ ISOZONE_GUARDED_BY(mu_) = 0;      // the end of a pause; 0: there is none
  int64_t pause_ns_ ISOZONE_GUARDED_BY(mu_) = kPauseNs;  // how long the next pause will be
  ColumnFamilyDriverStats stats_ ISOZONE_GUARDED_BY(mu_);

  mutable Mutex store_mu_;  // held by the one thread that writes the pointers; taken before mu_

  bool registered_ = false;           // touched by Open and Stop only
  std::vector<std::thread> threads_;  // touched by Open and Stop only
};

}  // namespace isozone
