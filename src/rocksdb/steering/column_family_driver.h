// Compacts a RocksDB column family as a picker of src/rocksdb/lsm says, from outside, by DB::CompactFiles.
//
// State. The driver keeps an LsmTree of its own: what RocksDB's metadata says of the column family, with what its own
// threads compact. After each flush, and after each of its compactions, it brings the tree up to date (Reconcile).
// Whatever else changes the tree in between (DeleteFilesInRange, ingestion, CompactRange) is found so, too; what was
// picked from an older view is refused by RocksDB ("Aborted", "InvalidArgument") and picked anew.
//
// Pauses. After a compaction that was refused or has failed, none begins for kPauseNs, and for twice as long after each
// further one, up to kPauseMostNs. A flush, and whoever waits for the driver, end the pause. While the column family
// has disable_auto_compactions=true, no compaction begins at all. A TransactionDB sets that while it is being opened,
// because compactions must not look at prepared values before it can tell which are committed.
//
// Threads. As many as asked for. Each picks, marks its inputs busy, compacts without a lock, and reconciles. The DB
// calls OnFlushCompleted through SteeringListener, which only sets a flag (Wake).
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
// kLongestHoldNs.
//
// Space. A compaction has its inputs and its outputs on the device at once. As long as one runs or can be picked, a
// flush leaves the space that it needs, and so does every other compaction. The less space there is, the less the
// picker isozone takes at a time. So the tree becomes compact where space runs short, instead of growing until nothing
// fits. While a flush waits or writes, RocksDB keeps the tables that compactions make obsolete. So a flush that may
// begin goes before the next compaction, and beside one that writes a compaction begins only if both find room. A flush
// that is overdue waits only for what runs (rocksdb/lsm/steered_shape.h).
//
// Lock order: store_mu_, then mu_, then the DB's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/status.h>

#include "base/mutex.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/lsm_tree.h"
#include "rocksdb/steering/driver_settings.h"

namespace isozone {

struct ColumnFamilyDriverOptions {
  std::string picker = "isozone";  // a name that MakeCompactionPicker knows
  uint32_t threads = 1;            // 1 to kDriverThreadsMax
  bool t_zone = true;              // short-lived outputs have zones of their own (output_guide.h)
  bool dynamic_levels = true;      // levels are sized from the last one up (LsmLimits::FromLastLevel)
  // Without sst_partitioner_factory=isozone, outputs are cut by their size only. False: that will do.
  bool needs_cuts = true;
};

struct ColumnFamilyDriverStats {
  uint64_t compactions = 0;
  uint64_t refused = 0;  // picked from an older view of the tree, and picked anew
  uint64_t failed = 0;
  uint64_t tables_moved = 0;       // to another level, and not written anew
  uint64_t bytes_read = 0;         // of inputs
  uint64_t bytes_written = 0;      // of outputs
  uint64_t short_lived_bytes = 0;  // of these, of outputs that the picker called short-lived
  uint64_t t_zones_most = 0;       // zones of the T-Zone of one column family, looked at after each compaction
  uint64_t t_zones_sum = 0;        // of what was looked at; its mean, by compactions, is of one column family, too
  uint64_t held_flushes = 0;       // that had to wait for compactions

  ColumnFamilyDriverStats& operator+=(const ColumnFamilyDriverStats& other) {
    compactions += other.compactions;
    refused += other.refused;
    failed += other.failed;
    tables_moved += other.tables_moved;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    short_lived_bytes += other.short_lived_bytes;
    t_zones_most = std::max(t_zones_most, other.t_zones_most);
    t_zones_sum += other.t_zones_sum;
    held_flushes += other.held_flushes;
    return *this;
  }
};

// RocksDB does not tell the end of every flush: not of one that found nothing to write, that has failed, or whose table
// another one installs. So all steps but kWrites, which the table's end follows, count for kFlushStepNs only.
enum class FlushStep : uint8_t {
  kBegun,
  kWrites,   // its table
  kWritten,  // and RocksDB installs the table
  kFailed,
  kInstalled
};

class ColumnFamilyDriver {
 public:
  static constexpr int64_t kPauseNs = 1'000'000;
  static constexpr int64_t kPauseMostNs = 500'000'000;
  static constexpr int64_t kFlushStepNs = 1'000'000'000;

  using OfDatabases = std::map<const rocksdb::DB*, std::vector<ColumnFamilyDriver*>>;

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

  // A compaction that runs.
  struct Task {
    CompactionPick pick = {};
    CompactionJob job = 0;
    uint64_t table_bytes = 0;  // the size of outputs
  };

  // That of a column family, if it has one.
  static ColumnFamilyDriver* Find(const OfDatabases& drivers, const FlushJob& flush);
  void Run();
  // What is to be done next, marked as begun; waits for it. False: the driver stops.
  bool Next(Task& task);
  // The same without waiting. False: nothing can be begun now.
  bool Begin(Task& task) ISOZONE_REQUIRES(mu_);
  rocksdb::Status Compact(const Task& task, std::vector<std::string>* outputs);
  void Finish(const Task& task, const rocksdb::Status& status, const std::vector<std::string>& outputs);
  void NoteSuccess(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                   const std::vector<std::string>& outputs) ISOZONE_REQUIRES(mu_);
  void AwaitCompactions() ISOZONE_REQUIRES(mu_);
  // Whether a flush may begin for which compactions have written so many bytes.
  bool MayFlush(uint64_t written) ISOZONE_REQUIRES(mu_);
  void CountFlush(const FlushJob& flush, FlushStep step) ISOZONE_REQUIRES(mu_);
  // What flushes of the database are writing, in bytes.
  uint64_t FlushingBytes() ISOZONE_REQUIRES(mu_);
  CompactionRoom RoomFor(const std::optional<CompactionPick>& next) const ISOZONE_REQUIRES(mu_);
  // Of the device, with what the collector can give back; of a file system that is not Isozone's, more than can be
  // used.
  uint64_t FreeBytes() const;
  void CountBytes(const CompactionPick& pick, const std::vector<LsmFile>& written) ISOZONE_REQUIRES(mu_);
  // Zones that short-lived tables have for themselves now.
  uint32_t TZones() const;
  void NoteFailure(const rocksdb::Status& status) ISOZONE_REQUIRES(mu_);
  // The next compaction is tried at once, whatever the last one met.
  void EndPause() ISOZONE_REQUIRES(mu_);
  // The files of the output level that are among `outputs`, which are paths.
  std::vector<LsmFile> OutputsIn(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                                 const std::vector<std::string>& outputs) const;
  // The tree becomes what the metadata says, but for what is being compacted.
  void Reconcile() ISOZONE_REQUIRES(mu_);
  void AddMissing(const rocksdb::ColumnFamilyMetaData& metadata) ISOZONE_REQUIRES(mu_);
  void RemoveGone(const rocksdb::ColumnFamilyMetaData& metadata) ISOZONE_REQUIRES(mu_);
  // A compaction that runs writes there; whether it has ended is for its thread to say.
  bool MayBeOutput(int level, const rocksdb::SstFileMetaData& file) const ISOZONE_REQUIRES(mu_);
  void LoadPointers() ISOZONE_EXCLUDES(mu_);
  void StorePointers() const ISOZONE_EXCLUDES(mu_);
  std::string PointersPath() const;

  rocksdb::DB* const db_;
  const rocksdb::DB* const root_;  // what events name: the innermost of wrapped databases
  rocksdb::ColumnFamilyHandle* const column_family_;
  const std::unique_ptr<CompactionPicker> picker_;
  const std::unique_ptr<KeyOrder> order_;
  const bool dynamic_levels_;
  const uint64_t t_zone_;  // the cohort of short-lived tables; 0: none

  mutable Mutex mu_;
  CondVar changed_;  // for all: something to do, or done
  SteeredShape shape_ ISOZONE_GUARDED_BY(mu_);
  LsmTree tree_ ISOZONE_GUARDED_BY(mu_);
  std::vector<const Task*> running_ ISOZONE_GUARDED_BY(mu_);
  bool stale_ ISOZONE_GUARDED_BY(mu_) = true;  // the tree may have changed
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  uint32_t flushes_held_ ISOZONE_GUARDED_BY(mu_) = 0;  // now
  // What compactions had written in all when each flush that waits now began to wait.
  std::multiset<uint64_t> waiting_since_bytes_ ISOZONE_GUARDED_BY(mu_);
  // Until when each flush of the database counts that has begun.
  std::map<std::pair<int, uint32_t>, int64_t> flushing_until_ns_ ISOZONE_GUARDED_BY(mu_);
  rocksdb::Status failure_ ISOZONE_GUARDED_BY(mu_);      // of the last compaction, during the pause after it
  int64_t retry_at_ns_ ISOZONE_GUARDED_BY(mu_) = 0;      // the end of a pause; 0: there is none
  int64_t pause_ns_ ISOZONE_GUARDED_BY(mu_) = kPauseNs;  // how long the next pause will be
  ColumnFamilyDriverStats stats_ ISOZONE_GUARDED_BY(mu_);

  mutable Mutex store_mu_;  // one writes the pointers; before mu_
  std::atomic<uint64_t> compactions_ = 0;

  bool registered_ = false;           // touched by Open and Stop only
  std::vector<std::thread> threads_;  // touched by Open and Stop only
};

}  // namespace isozone
