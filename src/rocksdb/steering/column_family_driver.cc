#include "rocksdb/steering/column_family_driver.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/comparator.h>
#include <rocksdb/file_system.h>
#include <rocksdb/metadata.h>

#include "base/log.h"
#include "base/thread.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/zoned_file_system.h"
#include "rocksdb/steering/output_guide.h"
#include "rocksdb/steering/pointers_file.h"

namespace isozone {
namespace {

constexpr int64_t kLookAgainNs = kLookForRoomNs;  // RocksDB tells nobody that compactions are enabled again
constexpr uint64_t kCompactionsPerStore = 64;     // of the pointers
constexpr uint64_t kPlenty = uint64_t{1} << 60;

class ComparatorOrder : public KeyOrder {
 public:
  explicit ComparatorOrder(const rocksdb::Comparator* comparator) : comparator_(comparator) {}
  int Compare(std::string_view a, std::string_view b) const override {
    return comparator_->Compare(rocksdb::Slice(a.data(), a.size()), rocksdb::Slice(b.data(), b.size()));
  }

 private:
  const rocksdb::Comparator* const comparator_;
};

// The drivers of the process, by the innermost DB that they compact.
struct DriverRegistry {
  Mutex mu;
  std::map<const rocksdb::DB*, std::vector<ColumnFamilyDriver*>> drivers ISOZONE_GUARDED_BY(mu);
};
DriverRegistry& Drivers() {
  static DriverRegistry* const registry = new DriverRegistry;  // threads of the process may outlive static objects
  return *registry;
}

// Cohorts are numbered within a mount, and this process has all mounts whose files its databases write.
uint64_t NewCohort() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

rocksdb::Status ColumnFamilyDriver::Open(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                         const ColumnFamilyDriverOptions& options,
                                         std::unique_ptr<ColumnFamilyDriver>* result) {
  result->reset();
  auto picker = MakeCompactionPicker(options.picker);
  if (!picker.ok()) return rocksdb::Status::InvalidArgument(picker.status().message());
  if (options.threads < 1 || options.threads > kDriverThreadsMax) {
    return rocksdb::Status::InvalidArgument(
        fmt::format("{} threads; 1 to {} can be had", options.threads, kDriverThreadsMax));
  }
  rocksdb::Status status = CheckCanBeDriven(db, column_family, options.needs_cuts);
  if (!status.ok()) return status;
  std::unique_ptr<ColumnFamilyDriver> driver(
      new ColumnFamilyDriver(db, column_family, std::move(picker).value(), options));
  {
    DriverRegistry& registry = Drivers();
    const MutexLock lock(registry.mu);
    auto& of_db = registry.drivers[driver->root_];
    for (const ColumnFamilyDriver* other : of_db) {
      if (other->column_family_->GetID() == column_family->GetID()) {
        return NotDriven(*column_family, "it has a driver already");
      }
    }
    of_db.push_back(driver.get());
    driver->registered_ = true;
  }
  WarnOfUnusedOptions(db->GetOptions(column_family), column_family->GetName());
  CompactionPointers pointers = LoadPointers(*db->GetFileSystem(), driver->PointersPath());
  {
    const MutexLock lock(driver->mu_);
    driver->tree_.set_pointers(std::move(pointers));
  }
  for (uint32_t i = 0; i < options.threads; ++i) {
    auto thread = StartThread("compaction", [d = driver.get()] { d->Run(); });
    if (!thread.ok() && i == 0) return ToIoStatus(thread.status(), "");
    if (!thread.ok()) break;  // it goes with fewer
    driver->threads_.push_back(std::move(thread).value());
  }
  *result = std::move(driver);
  return rocksdb::Status::OK();
}

ColumnFamilyDriver::ColumnFamilyDriver(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                       std::unique_ptr<CompactionPicker> picker,
                                       const ColumnFamilyDriverOptions& options)
    : db_(db),
      root_(db->GetRootDB()),
      column_family_(column_family),
      order_(std::make_unique<ComparatorOrder>(column_family->GetComparator())),
      clock_(*options.clock),
      dynamic_levels_(options.dynamic_levels),
      t_zone_(options.t_zone ? NewCohort() : 0),
      tree_(std::move(picker), *order_, ShapeOf(db->GetOptions(column_family), dynamic_levels_)) {}

ColumnFamilyDriver::~ColumnFamilyDriver() {
  if (registered_) Stop();
}

void ColumnFamilyDriver::Stop() {
  {
    DriverRegistry& registry = Drivers();
    const MutexLock lock(registry.mu);
    auto& of_db = registry.drivers[root_];
    std::erase(of_db, this);
    if (of_db.empty()) registry.drivers.erase(root_);
  }
  registered_ = false;
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
    while (flush_threads_ > 0) changed_.Wait(mu_);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  StorePointers();
}

template <typename Act>
void ColumnFamilyDriver::ForEachOf(const rocksdb::DB* db, Act&& act) {
  DriverRegistry& registry = Drivers();
  const MutexLock lock(registry.mu);
  const auto of_db = registry.drivers.find(db);
  if (of_db == registry.drivers.end()) return;
  for (ColumnFamilyDriver* driver : of_db->second) act(*driver);
}

void ColumnFamilyDriver::Wake(const rocksdb::DB* db) {
  ForEachOf(db, [](ColumnFamilyDriver& driver) {
    const MutexLock lock(driver.mu_);
    driver.stale_ = true;
    driver.EndPause();
  });
}

void ColumnFamilyDriver::BeginFlush(const FlushJob& flush, bool may_wait) {
  ColumnFamilyDriver* holding = nullptr;
  ForEachOf(flush.db, [&](ColumnFamilyDriver& driver) {
    if (!may_wait || driver.column_family_->GetID() != flush.column_family) return;
    holding = &driver;
    // From here on the driver waits for this thread before it ends.
    const MutexLock lock(driver.mu_);
    ++driver.flush_threads_;
  });
  if (holding != nullptr) {
    const MutexLock lock(holding->mu_);
    holding->AwaitCompactions();
    holding->flushes_.Note(flush, FlushStep::kBegun, holding->clock_.NowNs());  // before a compaction begins
    --holding->flush_threads_;
    holding->changed_.SignalAll();
  }
  NoteFlush(flush, FlushStep::kBegun);
}

void ColumnFamilyDriver::NoteFlush(const FlushJob& flush, FlushStep step) {
  ForEachOf(flush.db, [&](ColumnFamilyDriver& driver) {
    const MutexLock lock(driver.mu_);
    driver.flushes_.Note(flush, step, driver.clock_.NowNs());
    if (step == FlushStep::kFailed || step == FlushStep::kInstalled) driver.changed_.SignalAll();
  });
}

// What has changed without an event, by CompactFiles of the program for example, is found here, too: the driver's
// threads must hear of it, since they are what this waits for. The wait is bounded, because a compaction may be waiting
// inside RocksDB for somebody who waits for this flush: an ingestion, with releases that make CompactFiles wait for it
// (7.8).
void ColumnFamilyDriver::AwaitCompactions() {
  const uint64_t written_before = WrittenBytes();
  const auto written_since = [&]() ISOZONE_REQUIRES(mu_) {
    const uint64_t written = WrittenBytes();
    return written - std::min(written, written_before);
  };
  const auto waiting = flushes_.BeginWait(written_before);
  uint64_t ended = stats_.compactions;
  int64_t until_ns = clock_.NowNs() + kLongestHoldNs;
  stale_ = true;
  changed_.SignalAll();
  for (bool held = false; !MayFlush(written_since()); held = true) {
    if (!held) ++stats_.held_flushes;
    const int64_t now_ns = clock_.NowNs();
    if (std::exchange(ended, stats_.compactions) != stats_.compactions) until_ns = now_ns + kLongestHoldNs;
    if (now_ns >= until_ns) break;
    clock_.WaitUntil(changed_, mu_, std::min(until_ns, now_ns + kLookAgainNs));
  }
  flushes_.EndWait(waiting);
}

bool ColumnFamilyDriver::MayFlush(uint64_t written) {
  if (stopping_) return true;
  if (stale_) Reconcile();
  return retry_at_ns_ > 0 || tree_.MayFlush(FreeBytes(), written);
}

uint64_t ColumnFamilyDriver::FreeBytes() const {
  const ZonedFileSystem* fs = ZonedFileSystem::From(*db_->GetFileSystem());
  if (fs == nullptr) return kPlenty;
  // Who writes waits for zones that are being reset, and for the collector.
  const SpaceInfo space = fs->system().fs().state().Space();
  return space.free + space.dead;
}

rocksdb::Status ColumnFamilyDriver::WaitUntilIdle() {
  const MutexLock lock(mu_);
  stale_ = true;  // who waits may know of a flush that no listener has been told of yet
  EndPause();
  for (;;) {
    if (stopping_) return rocksdb::Status::ShutdownInProgress();
    if (stale_) Reconcile();
    if (!tree_.compacts() && (!failure_.ok() || !tree_.has_next())) return failure_;
    changed_.Wait(mu_);
  }
}

ColumnFamilyDriverStats ColumnFamilyDriver::Stats() const {
  const MutexLock lock(mu_);
  return stats_;
}

// ---------------------------------------------------------------------------------------------------------------------
// Threads
// ---------------------------------------------------------------------------------------------------------------------

void ColumnFamilyDriver::Run() {
  Compaction compaction;
  while (Next(compaction)) {
    std::vector<std::string> outputs;
    const rocksdb::Status status = Compact(compaction, &outputs);
    if (Finish(compaction, status, outputs)) StorePointers();
  }
}

bool ColumnFamilyDriver::Next(Compaction& next) {
  const MutexLock lock(mu_);
  for (;;) {
    if (stopping_) return false;
    if (retry_at_ns_ > 0 && clock_.NowNs() >= retry_at_ns_) EndPause();
    if (stale_) Reconcile();
    // Counted once. If Begin left room for a flush that stops counting right after, nobody would look again.
    const size_t flushes = flushes_.Running(clock_.NowNs());
    if (retry_at_ns_ == 0 && Begin(next, flushes)) return true;
    if (retry_at_ns_ > 0) {
      clock_.WaitUntil(changed_, mu_, retry_at_ns_);
    } else if (tree_.compacts() || flushes_.any_waits() || flushes > 0) {
      clock_.WaitUntil(changed_, mu_, clock_.NowNs() + kLookAgainNs);  // there may be room for one more
    } else {
      changed_.Wait(mu_);
    }
  }
}

bool ColumnFamilyDriver::Begin(Compaction& next, size_t flushes) {
  // The flush that has waited longest goes first.
  const uint64_t written = flushes_.WrittenWhileWaiting(WrittenBytes());
  if (flushes_.any_waits() && MayFlush(written)) return false;
  auto begun = tree_.Begin(FreeBytes(), flushes, written);
  if (!begun.ok()) NoteFailure(rocksdb::Status::Corruption(begun.status().message()));
  if (!begun.ok() || !begun->has_value()) return false;
  next = std::move(**begun);
  return true;
}

rocksdb::Status ColumnFamilyDriver::Compact(const Compaction& compaction, std::vector<std::string>* outputs) {
  const CompactionPick& pick = compaction.pick;
  rocksdb::CompactionOptions options;
  options.compression = rocksdb::kDisableCompressionOption;  // that of the column family
  options.output_file_size_limit = compaction.table_bytes;
  options.max_subcompactions = 1;
  // RocksDB takes it for a fatal error of the database if the column family is dropped meanwhile, which the default one
  // cannot be.
  if (pick.trivial_move && column_family_->GetID() == 0) AllowTrivialMove(options);
  std::vector<std::string> names;
  for (const CompactionPick::Input& input : pick.inputs) {
    for (const uint64_t number : input.files) names.push_back(TableName(number));
  }
  const OutputGuide guide(pick, *order_, t_zone_, compaction.table_bytes, *compaction.written_bytes);
  return db_->CompactFiles(options, column_family_, names, pick.output_level, -1, outputs);
}

bool ColumnFamilyDriver::Finish(const Compaction& done, const rocksdb::Status& status,
                                const std::vector<std::string>& outputs) {
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(column_family_, &metadata);
  const MutexLock lock(mu_);
  changed_.SignalAll();
  stale_ = true;
  if (!status.ok()) {
    tree_.Abandon(done);
    NoteFailure(status);
    return false;
  }
  pause_ns_ = kPauseNs;
  ColumnFamilyDriverStats counted = tree_.Finish(done, metadata, outputs);
  counted.t_zones_sum = counted.t_zones_most = TZones();
  stats_ += counted;
  return stats_.compactions % kCompactionsPerStore == 0;
}

uint32_t ColumnFamilyDriver::TZones() const {
  const ZonedFileSystem* fs = ZonedFileSystem::From(*db_->GetFileSystem());
  return fs == nullptr || t_zone_ == 0 ? 0 : fs->system().fs().state().RoomOf({}, t_zone_).begun;
}

// After each failure in a row the driver pauses for twice as long, so that a device that stays full is not kept busy
// with compactions that cannot end.
void ColumnFamilyDriver::NoteFailure(const rocksdb::Status& status) {
  if (status.IsShutdownInProgress() || status.IsColumnFamilyDropped()) {
    stopping_ = true;
    return;
  }
  const bool refused = status.IsAborted() || status.IsInvalidArgument() || status.IsIncomplete();
  ++(refused ? stats_.refused : stats_.failed);
  if (!refused) {
    failure_ = status;
    isozone::Log().error("a compaction of column family '{}' has failed: {}", column_family_->GetName(),
                         status.ToString());
  }
  retry_at_ns_ = clock_.NowNs() + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, kPauseMostNs);
}

void ColumnFamilyDriver::EndPause() {
  failure_ = rocksdb::Status::OK();
  retry_at_ns_ = 0;
  changed_.SignalAll();
}

std::string ColumnFamilyDriver::PointersPath() const {
  return fmt::format("{}/ISOZONE-COMPACTION-{}", db_->GetName(), column_family_->GetID());
}

void ColumnFamilyDriver::StorePointers() const {
  const MutexLock storing(store_mu_);
  CompactionPointers pointers;
  {
    const MutexLock lock(mu_);
    pointers = tree_.pointers();
  }
  isozone::StorePointers(*db_->GetFileSystem(), PointersPath(), pointers);
}

void ColumnFamilyDriver::Reconcile() {
  const rocksdb::Options options = db_->GetOptions(column_family_);
  stale_ = options.disable_auto_compactions;
  if (stale_) {
    failure_ = rocksdb::Status::Incomplete("disable_auto_compactions=true");
    retry_at_ns_ = clock_.NowNs() + kLookAgainNs;
    return;
  }
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(column_family_, &metadata);
  tree_.Update(ShapeOf(options, dynamic_levels_), metadata, FreeBytes());
}

}  // namespace isozone
