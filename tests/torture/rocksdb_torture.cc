// Every write of a run has a number, from 1; it puts one key, or one in each column family, to a value that names the
// number. So the state after recovery tells up to which write it goes, and must be exactly that of this write.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include "base/random.h"
#include "integration/scratch.h"
#include "isozone/isozone.h"
#include "model/quiet_log.h"
#include "model/volume.h"
#include "torture/torture.h"

namespace isozone::torture {
namespace {

constexpr size_t kFamilies = 2;
constexpr uint64_t kKeys = 300;

using Table = std::map<std::string, uint64_t>;  // key -> number of the write that put it last
struct State {
  std::array<Table, kFamilies> families;
};

struct Put {
  size_t family;
  std::string key;
};
using Write = std::vector<Put>;

Status FromRocksDb(const rocksdb::Status& status, std::string_view what) {
  return status.ok() ? Status::Ok() : Status::IoError(fmt::format("{}: {}", what, status.ToString()));
}

std::string ValueOf(uint64_t number) {
  Random random(number);
  std::string value = fmt::format("{} ", number);
  value.resize(random.Between(20, 1500), static_cast<char>('a' + number % 26));
  return value;
}

void Apply(State& state, const Write& write, uint64_t number) {
  for (const Put& put : write) state.families[put.family][put.key] = number;
}

// As a URI has them.
std::string UriOptions(const MountOptions& options) {
  const auto on_or_off = [](bool on) { return on ? "on" : "off"; };
  return fmt::format(
      "policy={}&gc={}&gc_start={}&gc_memory={}&stripe_unit={}&stripe_width={}&writer_memory={}&log_width={}&"
      "isolation={}&write_buffer={}&checkpoint_after={}",
      options.policy, options.gc.scheme, options.gc.start_percent.value(), options.gc.memory, options.stripe_unit,
      options.stripe_width, options.writer_memory, options.log_width, on_or_off(options.isolation),
      options.write_buffer, options.checkpoint_after);
}

// How a database works between two cuts.
struct Conduct {
  std::string picker;  // compacts it; empty: RocksDB does
  bool never_syncs = false;
};

// An open database. Its file system is unmounted with it.
class Database {
 public:
  static Result<std::unique_ptr<Database>> Open(const std::string& uri, const Conduct& conduct) {
    const std::string& picker = conduct.picker;
    auto database = std::make_unique<Database>();
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(OpenFileSystem(uri, &database->fs_), "mounting"));
    database->env_ = rocksdb::NewCompositeEnv(database->fs_);
    ISOZONE_RETURN_IF_ERROR(database->CountLogs());
    rocksdb::DBOptions options;
    options.env = database->env_.get();
    options.create_if_missing = options.create_missing_column_families = true;
    options.max_background_jobs = 3;
    options.max_total_wal_size = 512 * kKiB;
    rocksdb::ColumnFamilyOptions family;
    family.write_buffer_size = 64 * kKiB;
    family.level0_file_num_compaction_trigger = 2;
    family.target_file_size_base = 64 * kKiB;
    family.max_bytes_for_level_base = 256 * kKiB;
    if (conduct.never_syncs) KeepLogs(options, family);
    if (!picker.empty()) ISOZONE_RETURN_IF_ERROR(Steer(options, family));
    const std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {{rocksdb::kDefaultColumnFamilyName, family},
                                                                      {"second", family}};
    const auto open =
        [&](auto* out) -> decltype(rocksdb::DB::Open(options, "/db", descriptors, &database->handles_, out)) {
      return rocksdb::DB::Open(options, "/db", descriptors, &database->handles_, out);
    };
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(OpenInto(&database->db_, open), "opening the database"));
    if (picker.empty()) return database;
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(CompactionDriver::Open(database->db_.get(), database->handles_,
                                                               {.picker = picker, .threads = 2}, &database->driver_),
                                        "steering"));
    return database;
  }

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    driver_.reset();
    for (rocksdb::ColumnFamilyHandle* handle : handles_) (void)db_->DestroyColumnFamilyHandle(handle);
    db_.reset();
  }

  Status Commit(const Write& write, uint64_t number, bool sync) {
    rocksdb::WriteBatch batch;
    for (const Put& put : write) {
      ISOZONE_RETURN_IF_ERROR(FromRocksDb(batch.Put(handles_[put.family], put.key, ValueOf(number)), "batch"));
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    return FromRocksDb(db_->Write(options, &batch), "write");
  }

  Status Flush(size_t family) {
    rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;
    return FromRocksDb(db_->Flush(options, handles_[family]), "flush");
  }

  // All garbage. How many bytes were copied.
  Result<uint64_t> CollectGarbage() {
    uint64_t copied = 0;
    const auto progress = [&](uint64_t so_far, uint64_t) {
      copied = so_far;
      return true;
    };
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(isozone::CollectGarbage(*fs_, 100, progress), "collecting"));
    return copied;
  }

  // Waits for what its picker has to compact, and returns how many compactions there were.
  Result<uint64_t> AwaitSteering() {
    if (driver_ == nullptr) return 0;
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(driver_->WaitUntilIdle(), "steered compaction"));
    return nlohmann::json::parse(driver_->Stats()).at("compactions").get<uint64_t>();
  }

  // How many logs had bytes before it was opened.
  uint64_t logs_found() const { return logs_found_; }

  // Every key and what its value says; kCorruption where a value is not whole.
  Result<State> ReadAll() {
    State state;
    for (size_t family = 0; family < kFamilies; ++family) {
      const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), handles_[family]));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        const std::string value = it->value().ToString();
        const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
        if (value != ValueOf(number)) {
          return Status::Corruption(fmt::format("the value of '{}' is not what was put", it->key().ToString()));
        }
        state.families[family][it->key().ToString()] = number;
      }
      ISOZONE_RETURN_IF_ERROR(FromRocksDb(it->status(), "reading"));
    }
    return state;
  }

 private:
  Status CountLogs() {
    std::vector<rocksdb::Env::FileAttributes> files;
    const rocksdb::Status listed = env_->GetChildrenFileAttributes("/db", &files);
    if (listed.IsNotFound()) return Status::Ok();
    logs_found_ = static_cast<uint64_t>(std::ranges::count_if(
        files, [](const auto& file) { return file.name.ends_with(".log") && file.size_bytes > 0; }));
    return FromRocksDb(listed, "listing");
  }

  // Several logs are live at any time, and are written out piece by piece. A log that has lost its end does not keep
  // RocksDB from those behind it: a hole shows.
  static void KeepLogs(rocksdb::DBOptions& options, rocksdb::ColumnFamilyOptions& family) {
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
    options.wal_bytes_per_sync = 8 * kKiB;
    family.write_buffer_size = 32 * kKiB;
    family.min_write_buffer_number_to_merge = 3;
    family.max_write_buffer_number = 6;
  }

  static Status Steer(rocksdb::DBOptions& options, rocksdb::ColumnFamilyOptions& family) {
    family.compaction_style = rocksdb::kCompactionStyleNone;
    const rocksdb::ConfigOptions config;
    ISOZONE_RETURN_IF_ERROR(
        FromRocksDb(rocksdb::GetDBOptionsFromString(config, options, "listeners={isozone}", &options), "the listener"));
    return FromRocksDb(
        rocksdb::GetColumnFamilyOptionsFromString(config, family, "sst_partitioner_factory=isozone", &family),
        "the partitioner");
  }

  std::shared_ptr<rocksdb::FileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<CompactionDriver> driver_;
  uint64_t logs_found_ = 0;
};

// What the processes of a run tell each other.
struct Board {
  std::atomic<bool> opened;
  std::atomic<uint64_t> attempted;  // writes
  std::atomic<uint64_t> synced;     // number of the last write that was synced
  std::atomic<uint64_t> recovered;  // number of the last write that was found
  std::atomic<uint64_t> collected;  // bytes, by GC that was asked for
  std::atomic<uint64_t> steered;    // compactions, after a recovery
  std::atomic<uint64_t> logs;       // found after the cut that have bytes
  std::array<char, 4096> failure;   // empty: none
};

// RocksDB does not survive every I/O error: its debug builds, Debian's is one, end in an assertion where a file is
// touched again after one failed. A power cut ends the process anyway, so each cut has a process of its own, and so has
// each recovery. This one has no threads.
class Chain {
 public:
  explicit Chain(uint64_t seed) : random_(seed) {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = memory == MAP_FAILED ? nullptr : new (memory) Board();
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain() { munmap(board_, sizeof(Board)); }

  Status Run() {
    if (board_ == nullptr) return Status::FromErrno(errno, "cannot share memory");
    DeviceGeometry geometry;
    geometry.zone_count = 96;
    geometry.zone_size = 512 * kKiB;
    geometry.zone_capacity = geometry.zone_size - 4096 * random_.Below(32);
    geometry.max_active_zones = geometry.max_open_zones = static_cast<uint32_t>(random_.Between(10, 40));
    geometry.optimal_write = geometry.block_size;
    geometry.fua_covers_zone = random_.Chance(0.5);
    // With kept memory or without.
    const bool in_file = random_.Chance(0.5);
    ISOZONE_ASSIGN_OR_RETURN(model::Volume volume,
                             in_file ? model::Volume::CreateInFile(geometry) : model::Volume::Create(geometry));
    ISOZONE_RETURN_IF_ERROR(InProcess([&] { return FormatWithGroups(volume); }));
    for (uint64_t cut = 0; cut < kCutsPerChain; ++cut, ++report.cuts) {
      const std::string uri = fmt::format("isozone://emu:{}?{}{}", volume.path(),
                                          UriOptions(model::RandomMountOptions(random_, true)), volume.kept_options());
      const uint64_t commands = random_.Below(random_.Chance(0.25)  ? kCommandsToOpen
                                              : random_.Chance(0.3) ? 300
                                                                    : 3000);
      Conduct conduct;
      conduct.picker = random_.Chance(0.5) ? "" : kPickers[random_.Below(kPickers.size())];
      conduct.never_syncs = random_.Chance(0.5);
      // The process alone may die: then every write is there.
      const bool is_kill = in_file && random_.Chance(0.4);
      const std::string cut_after = is_kill ? "" : fmt::format("&fault_power_cut_after={}", commands);
      const std::string faults = fmt::format("&fault_seed={}{}", random_.Next() >> 1, cut_after);
      const uint64_t seed = random_.Next();
      board_->opened = false;
      board_->attempted = board_->collected = board_->steered = board_->logs = 0;
      ISOZONE_RETURN_IF_ERROR(InProcess([&] { return Work(uri + faults, conduct, seed, is_kill); }).WithContext(uri));
      if (!board_->opened) ++report.in_mount;
      if (!is_kill) volume.Reboot();
      ISOZONE_RETURN_IF_ERROR(InProcess([&] { return Recover(volume, uri, conduct, seed); }).WithContext(uri));
      if (conduct.never_syncs && !is_kill) NoteUnsynced();
      Accept(seed);
    }
    return Status::Ok();
  }

  Report report;

 private:
  Status FormatWithGroups(model::Volume& volume) {
    ISOZONE_RETURN_IF_ERROR(volume.Format());
    ISOZONE_RETURN_IF_ERROR(volume.Mount({}));
    ISOZONE_RETURN_IF_ERROR(volume.fs().groups().Set(model::RandomGroups(random_, volume.device().geometry())));
    return volume.Unmount();
  }

  static constexpr uint64_t kCommandsToOpen = 20;  // about, a database
  static constexpr std::array<const char*, 5> kPickers = {"leveled", "greedy", "gear", "ll", "isozone"};

  struct Step {
    Write write;
    bool sync = false;
    bool flush = false;
    bool collect = false;
  };
  static Step NextStep(Random& random) {
    const auto key = [&] { return fmt::format("key{:04}", random.Below(kKeys)); };
    Step step;
    if (random.Chance(0.2)) {
      step.write = {{0, key()}, {1, key()}};
    } else {
      step.write = {{random.Below(kFamilies), key()}};
    }
    step.sync = random.Chance(0.1);
    step.flush = random.Chance(0.002);
    step.collect = random.Chance(0.002);
    return step;
  }

  // Runs `work` in a child process, which ends with it, threads and all.
  Status InProcess(const std::function<Status()>& work) {
    board_->failure[0] = '\0';
    const int log = memfd_create("stderr", 0);
    const pid_t child = fork();
    if (child < 0) return Status::FromErrno(errno, "cannot fork");
    if (child == 0) {
      dup2(log, STDERR_FILENO);
      const Status status = work();
      if (!status.ok()) fmt::format_to_n(board_->failure.data(), board_->failure.size() - 1, "{}", status.ToString());
      _exit(status.ok() ? 0 : 1);
    }
    int outcome = 0;
    waitpid(child, &outcome, 0);
    std::string words(1 << 20, '\0');
    words.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(log, words.data(), words.size(), 0))));
    close(log);
    if (outcome == 0) return Status::Ok();
    if (board_->failure[0] != '\0') return Status::Corruption(board_->failure.data());
    const auto says = [&](std::string_view text) { return words.find(text) != std::string::npos; };
    // Assertions of RocksDB, in builds that have them. The second fails where two jobs write to the MANIFEST while the
    // power goes: the one that had succeeded finds the error of the other.
    if (says("sync_without_flush_called_")) return Status::Ok();
    if (says("compaction_job.io_status().ok()") && says("Power Loss")) return Status::Ok();
    return Status::Corruption(fmt::format("the process ended with {:#x} and these words: {}", outcome, words));
  }

  // Until the power goes, at the latest after some thousand writes.
  Status Work(const std::string& uri, const Conduct& conduct, uint64_t seed, bool is_kill) {
    const auto database = Database::Open(uri, conduct);
    if (!database.ok()) return Status::Ok();
    board_->opened = true;
    Random random(seed);
    for (uint64_t writes = random.Between(100, 3000); writes > 0; --writes) {
      const Step step = NextStep(random);
      const uint64_t number = last_number_ + ++board_->attempted;
      const bool sync = step.sync && !conduct.never_syncs;
      if (!(*database)->Commit(step.write, number, sync).ok()) _exit(0);
      if (sync || is_kill) board_->synced = number;
      if (step.flush && !(*database)->Flush(step.write.front().family).ok()) _exit(0);
      if (!step.collect) continue;
      const auto copied = (*database)->CollectGarbage();
      if (!copied.ok()) _exit(0);
      board_->collected += *copied;
    }
    _exit(0);
  }

  Status Recover(model::Volume& volume, const std::string& uri, const Conduct& conduct, uint64_t seed) {
    ISOZONE_RETURN_IF_ERROR(volume.Check(/*read_data=*/true));
    {
      ISOZONE_ASSIGN_OR_RETURN(const auto database, Database::Open(uri, conduct));
      board_->logs = database->logs_found();
      ISOZONE_ASSIGN_OR_RETURN(const State found, database->ReadAll());
      ISOZONE_RETURN_IF_ERROR(CheckRecovered(found, seed));
      ISOZONE_ASSIGN_OR_RETURN(board_->steered, database->AwaitSteering());
      ISOZONE_ASSIGN_OR_RETURN(const State compacted, database->ReadAll());
      if (compacted.families != found.families)
        return Status::Corruption("steered compaction has changed what is there");
    }
    return volume.Check(/*read_data=*/true);
  }

  Status CheckRecovered(const State& found, uint64_t seed) {
    uint64_t last = recovered_;
    for (const Table& table : found.families) {
      for (const auto& [key, number] : table) last = std::max(last, number);
    }
    if (last < board_->synced) {
      return Status::Corruption(
          fmt::format("recovered up to write {}, but {} was to stay", last, board_->synced.load()));
    }
    if (last > last_number_ + board_->attempted) {
      return Status::Corruption(fmt::format("write {} was never made", last));
    }
    board_->recovered = last;
    const State wanted = StateAt(last, seed);
    for (size_t family = 0; family < kFamilies; ++family) {
      if (found.families[family] == wanted.families[family]) continue;
      return Status::Corruption(fmt::format("recovered up to write {}, but column family {} is not as of it{}", last,
                                            family, Difference(found.families[family], wanted.families[family])));
    }
    return Status::Ok();
  }

  State StateAt(uint64_t last, uint64_t seed) const {
    State state = base_;
    Random random(seed);
    (void)random.Between(100, 3000);
    for (uint64_t number = last_number_ + 1; number <= last; ++number) Apply(state, NextStep(random).write, number);
    return state;
  }

  // What was recovered counts from here on. The numbers of lost writes are not used again.
  void Accept(uint64_t seed) {
    base_ = StateAt(board_->recovered, seed);
    recovered_ = board_->recovered;
    board_->synced = recovered_;
    report.operations += board_->attempted;
    report.bytes_collected += board_->collected;
    report.steered += board_->steered;
    last_number_ += board_->attempted;
  }

  void NoteUnsynced() {
    ++report.unsynced;
    if (board_->logs > 1) ++report.several_logs;
  }

  static std::string Difference(const Table& found, const Table& wanted) {
    for (const auto& [key, number] : wanted) {
      const auto it = found.find(key);
      if (it == found.end()) return fmt::format(": '{}' of write {} is missing", key, number);
      if (it->second != number) return fmt::format(": '{}' is of write {} and not {}", key, it->second, number);
    }
    return ": there are keys that were never put";
  }

  Random random_;
  Board* board_ = nullptr;
  State base_;                // what was found last
  uint64_t recovered_ = 0;    // number of the last write in it
  uint64_t last_number_ = 0;  // of the last write that was made before this cut
};

}  // namespace

Result<Report> RunPowerCutsOnRocksDb(const Options& options) {
  const QuietLog quiet;
  Report total;
  Status status;
  for (uint64_t first = options.first; status.ok() && first < options.first + options.cuts; first += kCutsPerChain) {
    Chain chain(Random(options.seed).Next() + first);
    status = chain.Run().WithContext(
        fmt::format("isozone_torture --rocksdb --seed {} --first {} --cuts {}", options.seed, first, kCutsPerChain));
    total.cuts += chain.report.cuts;
    total.in_mount += chain.report.in_mount;
    total.operations += chain.report.operations;
    total.bytes_collected += chain.report.bytes_collected;
    total.steered += chain.report.steered;
    total.unsynced += chain.report.unsynced;
    total.several_logs += chain.report.several_logs;
    if (options.progress) options.progress(total.cuts);
  }
  if (!status.ok()) return status;
  return total;
}

}  // namespace isozone::torture
