#include "rocksdb/steering/column_family_driver.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/comparator.h>
#include <rocksdb/file_system.h>
#include <rocksdb/metadata.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/zoned_file_system.h"
#include "rocksdb/steering/output_guide.h"

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
  ColumnFamilyDriver::OfDatabases drivers ISOZONE_GUARDED_BY(mu);
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

std::string TableName(uint64_t number) { return fmt::format("/{:06}.sst", number); }

LsmFile AsLsmFile(const rocksdb::SstFileMetaData& file) {
  LsmFile result;
  result.number = file.file_number;
  result.smallest = file.smallestkey;
  result.largest = file.largestkey;
  result.bytes = file.size;
  return result;
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
  driver->LoadPointers();
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
      picker_(std::move(picker)),
      order_(std::make_unique<ComparatorOrder>(column_family->GetComparator())),
      dynamic_levels_(options.dynamic_levels),
      t_zone_(options.t_zone ? NewCohort() : 0),
      shape_(ShapeOf(db->GetOptions(column_family), dynamic_levels_)),
      tree_(shape_.EmptyLimits(), *order_) {}

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
    while (flushes_held_ > 0) changed_.Wait(mu_);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  StorePointers();
}

void ColumnFamilyDriver::Wake(const rocksdb::DB* db) {
  DriverRegistry& registry = Drivers();
  const MutexLock lock(registry.mu);
  const auto of_db = registry.drivers.find(db);
  if (of_db == registry.drivers.end()) return;
  for (ColumnFamilyDriver* driver : of_db->second) {
    const MutexLock driver_lock(driver->mu_);
    driver->stale_ = true;
    driver->EndPause();
  }
}

void ColumnFamilyDriver::BeginFlush(const FlushJob& flush, bool may_wait) {
  ColumnFamilyDriver* driver = nullptr;
  {
    DriverRegistry& registry = Drivers();
    const MutexLock lock(registry.mu);
    driver = may_wait ? Find(registry.drivers, flush) : nullptr;
    if (driver != nullptr) {
      // From here on the driver waits for this thread before it ends.
      const MutexLock driver_lock(driver->mu_);
      ++driver->flushes_held_;
    }
  }
  if (driver != nullptr) {
    const MutexLock lock(driver->mu_);
    driver->AwaitCompactions();
    driver->CountFlush(flush, FlushStep::kBegun);  // before a compaction begins
    --driver->flushes_held_;
    driver->changed_.SignalAll();
  }
  NoteFlush(flush, FlushStep::kBegun);
}

// RocksDB keeps obsolete tables for the flushes of all column families.
void ColumnFamilyDriver::NoteFlush(const FlushJob& flush, FlushStep step) {
  DriverRegistry& registry = Drivers();
  const MutexLock lock(registry.mu);
  const auto of_db = registry.drivers.find(flush.db);
  if (of_db == registry.drivers.end()) return;
  for (ColumnFamilyDriver* driver : of_db->second) {
    const MutexLock driver_lock(driver->mu_);
    driver->CountFlush(flush, step);
  }
}

void ColumnFamilyDriver::CountFlush(const FlushJob& flush, FlushStep step) {
  const std::pair<int, uint32_t> key(flush.number, flush.column_family);
  if (step == FlushStep::kFailed || step == FlushStep::kInstalled) {
    flushing_until_ns_.erase(key);
    changed_.SignalAll();
  } else {
    flushing_until_ns_[key] = MonotonicNs() + (step == FlushStep::kWrites ? kLongestFlushNs : kFlushStepNs);
  }
}

ColumnFamilyDriver* ColumnFamilyDriver::Find(const OfDatabases& drivers, const FlushJob& flush) {
  const auto of_db = drivers.find(flush.db);
  if (of_db == drivers.end()) return nullptr;
  const auto found = std::find_if(of_db->second.begin(), of_db->second.end(), [&](const ColumnFamilyDriver* driver) {
    return driver->column_family_->GetID() == flush.column_family;
  });
  return found == of_db->second.end() ? nullptr : *found;
}

// What has changed without an event, by CompactFiles of the program for example, is found here, too: the driver's
// threads must hear of it, since they are what this waits for. The wait is bounded, because a compaction may be waiting
// inside RocksDB for somebody who waits for this flush: an ingestion, with releases that make CompactFiles wait for it
// (7.8).
void ColumnFamilyDriver::AwaitCompactions() {
  const auto written_before = waiting_since_bytes_.insert(stats_.bytes_written);
  uint64_t ended = stats_.compactions;
  int64_t until_ns = MonotonicNs() + kLongestHoldNs;
  stale_ = true;
  changed_.SignalAll();
  for (bool held = false; !MayFlush(stats_.bytes_written - *written_before); held = true) {
    if (!held) ++stats_.held_flushes;
    const int64_t now_ns = MonotonicNs();
    if (std::exchange(ended, stats_.compactions) != stats_.compactions) until_ns = now_ns + kLongestHoldNs;
    if (now_ns >= until_ns) break;
    changed_.WaitUntil(mu_, std::min(until_ns, now_ns + kLookAgainNs));
  }
  waiting_since_bytes_.erase(written_before);
}

uint64_t ColumnFamilyDriver::FlushingBytes() {
  const int64_t now_ns = MonotonicNs();
  std::erase_if(flushing_until_ns_, [now_ns](const auto& flush) { return flush.second < now_ns; });
  return flushing_until_ns_.size() * shape_.memtable_bytes;
}

bool ColumnFamilyDriver::MayFlush(uint64_t written) {
  if (stopping_) return true;
  if (stale_) Reconcile();
  if (retry_at_ns_ > 0) return true;
  CompactionRoom room = RoomFor(picker_->Pick(tree_));
  room.written_bytes_since_asked = written;
  return shape_.MayFlush(tree_, room);
}

// A compaction writes at most what it reads: what is dropped is not known before, nor whether RocksDB moves what it
// could move.
CompactionRoom ColumnFamilyDriver::RoomFor(const std::optional<CompactionPick>& next) const {
  CompactionRoom room;
  room.free_bytes = FreeBytes();
  for (const Task* task : running_) room.running_bytes = room.running_bytes.value_or(0) + tree_.bytes(task->pick);
  if (next) room.next_bytes = tree_.bytes(*next);
  return room;
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
    if (running_.empty() && (!failure_.ok() || !picker_->Pick(tree_))) return failure_;
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
  Task task;
  while (Next(task)) {
    std::vector<std::string> outputs;
    const rocksdb::Status status = Compact(task, &outputs);
    Finish(task, status, outputs);
    if (status.ok() && ++compactions_ % kCompactionsPerStore == 0) StorePointers();
  }
}

bool ColumnFamilyDriver::Next(Task& task) {
  const MutexLock lock(mu_);
  for (;;) {
    if (stopping_) return false;
    if (retry_at_ns_ > 0 && MonotonicNs() >= retry_at_ns_) EndPause();
    if (stale_) Reconcile();
    if (retry_at_ns_ == 0 && Begin(task)) return true;
    if (retry_at_ns_ > 0) {
      changed_.WaitUntil(mu_, retry_at_ns_);
    } else if (!running_.empty() || !waiting_since_bytes_.empty() || !flushing_until_ns_.empty()) {
      changed_.WaitUntil(mu_, MonotonicNs() + kLookAgainNs);  // there may be room for one more
    } else {
      changed_.Wait(mu_);
    }
  }
}

bool ColumnFamilyDriver::Begin(Task& task) {
  // The flush that has waited longest goes first.
  const bool flush_waits = !waiting_since_bytes_.empty();
  const uint64_t written = flush_waits ? stats_.bytes_written - *waiting_since_bytes_.begin() : 0;
  if (flush_waits && MayFlush(written)) return false;
  auto picked = picker_->Pick(tree_);
  CompactionRoom room = RoomFor(picked);
  room.flushing_bytes = FlushingBytes();
  room.written_bytes_since_asked = written;
  if (!SteeredShape::MayCompact(room)) return false;
  // RocksDB may write anew what could be moved. What it has done is taken from its metadata.
  const bool moves = std::exchange(picked->trivial_move, false);
  const auto begun = tree_.Begin(*picked);
  if (!begun.ok()) {
    NoteFailure(rocksdb::Status::Corruption(fmt::format("the picker '{}' chose what cannot be begun", picker_->name()),
                                            begun.status().message()));
    return false;
  }
  task = {std::move(*picked), *begun, tree_.limits().table_bytes};
  task.pick.trivial_move = moves;
  running_.push_back(&task);
  return true;
}

rocksdb::Status ColumnFamilyDriver::Compact(const Task& task, std::vector<std::string>* outputs) {
  rocksdb::CompactionOptions options;
  options.compression = rocksdb::kDisableCompressionOption;  // that of the column family
  options.output_file_size_limit = task.table_bytes;
  options.max_subcompactions = 1;
  // RocksDB takes it for a fatal error of the database if the column family is dropped meanwhile, which the default one
  // cannot be.
  if (task.pick.trivial_move && column_family_->GetID() == 0) AllowTrivialMove(options);
  std::vector<std::string> names;
  for (const CompactionPick::Input& input : task.pick.inputs) {
    for (const uint64_t number : input.files) names.push_back(TableName(number));
  }
  const OutputGuide guide(task.pick, *order_, t_zone_, task.table_bytes);
  return db_->CompactFiles(options, column_family_, names, task.pick.output_level, -1, outputs);
}

void ColumnFamilyDriver::Finish(const Task& task, const rocksdb::Status& status,
                                const std::vector<std::string>& outputs) {
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(column_family_, &metadata);
  const MutexLock lock(mu_);
  std::erase(running_, &task);
  changed_.SignalAll();
  stale_ = true;
  if (!status.ok()) {
    (void)tree_.Abandon(task.job);
    NoteFailure(status);
    return;
  }
  NoteSuccess(task.pick, metadata, outputs);
  // Tables that were moved have the numbers that they had, and somebody else may have changed the outputs already. The
  // inputs are gone in either case, and Reconcile adds what is there.
  if (!tree_.Finish(task.job, OutputsIn(task.pick, metadata, outputs)).ok()) (void)tree_.Finish(task.job, {});
}

void ColumnFamilyDriver::NoteSuccess(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                                     const std::vector<std::string>& outputs) {
  pause_ns_ = kPauseNs;
  ++stats_.compactions;
  const std::vector<LsmFile> written = OutputsIn(pick, metadata, outputs);
  // A table that is moved keeps its number.
  if (!written.empty() && tree_.Find(written.front().number) != nullptr) {
    stats_.tables_moved += written.size();
  } else {
    CountBytes(pick, written);
  }
  const uint64_t t_zones = TZones();
  stats_.t_zones_most = std::max(stats_.t_zones_most, t_zones);
  stats_.t_zones_sum += t_zones;
}

void ColumnFamilyDriver::CountBytes(const CompactionPick& pick, const std::vector<LsmFile>& written) {
  stats_.bytes_read += tree_.bytes(pick);
  for (const LsmFile& file : written) {
    stats_.bytes_written += file.bytes;
    if (file.short_lived) stats_.short_lived_bytes += file.bytes;
  }
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
  retry_at_ns_ = MonotonicNs() + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, kPauseMostNs);
}

void ColumnFamilyDriver::EndPause() {
  failure_ = rocksdb::Status::OK();
  retry_at_ns_ = 0;
  changed_.SignalAll();
}

// ---------------------------------------------------------------------------------------------------------------------
// Compaction pointers
// ---------------------------------------------------------------------------------------------------------------------

std::string ColumnFamilyDriver::PointersPath() const {
  return fmt::format("{}/ISOZONE-COMPACTION-{}", db_->GetName(), column_family_->GetID());
}

void ColumnFamilyDriver::LoadPointers() {
  std::string text;
  const rocksdb::IOStatus read = rocksdb::ReadFileToString(db_->GetFileSystem(), PointersPath(), &text);
  if (read.IsNotFound() || read.IsPathNotFound()) return;
  const auto pointers =
      read.ok() ? CompactionPointers::FromText(text) : Result<CompactionPointers>(Status::IoError(read.ToString()));
  if (!pointers.ok()) {
    isozone::Log().warn("{} is not used, and sweeps begin anew: {}", PointersPath(), pointers.status().message());
    return;
  }
  const MutexLock lock(mu_);
  tree_.pointers() = *pointers;
}

// The file is replaced as a whole, so that there is always a complete one.
void ColumnFamilyDriver::StorePointers() const {
  const MutexLock storing(store_mu_);
  std::string text;
  {
    const MutexLock lock(mu_);
    text = tree_.pointers().ToText();
  }
  rocksdb::FileSystem* fs = db_->GetFileSystem();
  const std::string path = PointersPath();
  rocksdb::IOStatus status = rocksdb::WriteStringToFile(fs, text, path + ".new", /*should_sync=*/true);
  if (status.ok()) status = fs->RenameFile(path + ".new", path, rocksdb::IOOptions(), nullptr);
  if (!status.ok()) isozone::Log().warn("{} is not written: {}", path, status.ToString());
}

// ---------------------------------------------------------------------------------------------------------------------
// The view of the tree
// ---------------------------------------------------------------------------------------------------------------------

std::vector<LsmFile> ColumnFamilyDriver::OutputsIn(const CompactionPick& pick,
                                                   const rocksdb::ColumnFamilyMetaData& metadata,
                                                   const std::vector<std::string>& outputs) const {
  std::vector<LsmFile> files;
  for (const rocksdb::SstFileMetaData& file : metadata.levels[static_cast<size_t>(pick.output_level)].files) {
    const auto is_it = [name = TableName(file.file_number)](const std::string& path) { return path.ends_with(name); };
    if (std::none_of(outputs.begin(), outputs.end(), is_it)) continue;
    files.push_back(AsLsmFile(file));
    files.back().short_lived = pick.IsShortLived(*order_, files.back().smallest);
  }
  return files;
}

void ColumnFamilyDriver::Reconcile() {
  const rocksdb::Options options = db_->GetOptions(column_family_);
  shape_ = ShapeOf(options, dynamic_levels_);
  stale_ = options.disable_auto_compactions;
  if (stale_) {
    failure_ = rocksdb::Status::Incomplete("disable_auto_compactions=true");
    retry_at_ns_ = MonotonicNs() + kLookAgainNs;
    return;
  }
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(column_family_, &metadata);
  RemoveGone(metadata);
  AddMissing(metadata);
  tree_.set_limits(shape_.LimitsFor(tree_, FreeBytes()));
}

void ColumnFamilyDriver::RemoveGone(const rocksdb::ColumnFamilyMetaData& metadata) {
  for (int level = 0; level < tree_.limits().levels(); ++level) {
    std::unordered_set<uint64_t> there;
    for (const auto& file : metadata.levels[static_cast<size_t>(level)].files) there.insert(file.file_number);
    std::vector<uint64_t> gone;
    for (const LsmFile* file : tree_.files(level)) {
      if (!there.contains(file->number) && !tree_.busy(*file)) gone.push_back(file->number);
    }
    for (const uint64_t number : gone) (void)tree_.RemoveFile(number);
  }
}

void ColumnFamilyDriver::AddMissing(const rocksdb::ColumnFamilyMetaData& metadata) {
  for (int level = 0; level < tree_.limits().levels(); ++level) {
    const auto& files = metadata.levels[static_cast<size_t>(level)].files;
    // RocksDB lists the newest file of level 0 first.
    for (size_t i = files.size(); i-- > 0;) {
      const rocksdb::SstFileMetaData& file = files[i];
      if (tree_.Find(file.file_number) != nullptr || MayBeOutput(level, file)) continue;
      const Status added = tree_.AddFile(level, AsLsmFile(file));
      if (!added.ok()) isozone::Log().warn("table {} is left out of the view: {}", file.name, added.message());
    }
  }
}

bool ColumnFamilyDriver::MayBeOutput(int level, const rocksdb::SstFileMetaData& file) const {
  return std::any_of(running_.begin(), running_.end(), [&](const Task* task) {
    return task->pick.output_level == level && !order_->Less(file.largestkey, task->pick.smallest) &&
           !order_->Less(task->pick.largest, file.smallestkey);
  });
}

}  // namespace isozone
