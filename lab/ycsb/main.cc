// isozone_ycsb: loads a RocksDB database and runs one of YCSB's core workloads on it, on any file system that RocksDB
// can be given by URI. The program knows none but POSIX; the library that brings another is preloaded.
//
// Each phase (load, run) divides its operations among clients, one thread each. A client does one operation after the
// other; its latency is the time spent in RocksDB, without making and checking values. What a client measures lies in
// histograms of its own. The main thread watches: at each interval it takes all histograms, and what they have more
// than at the last is the interval. Between the phases the database is closed and opened, so that the run starts with
// the cache empty.
//
// The first error ends the run: a status of RocksDB, a record that is not there, a value of another key.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/status.h"
#include "base/units.h"
#include "base/uri.h"
#include "ycsb/workload.h"

namespace isozone::ycsb {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kProgressNs = kSecondNs;
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr auto kSettlePoll = std::chrono::milliseconds(50);
constexpr uint64_t kMaxCount = 1'000'000'000'000;
constexpr uint64_t kMaxIntervalMs = 3'600'000;

struct Arguments {
  std::string workload;
  std::string fs_uri;
  std::string db;
  std::string phase = "load-and-run";
  uint64_t records = 100'000;
  uint64_t operations = 100'000;
  uint32_t threads = 1;
  uint64_t value_size = 1000;  // bytes, as all sizes
  uint64_t write_buffer_size = 64 * kMiB;
  int max_background_jobs = 2;
  uint64_t target_file_size = 64 * kMiB;
  std::string compression = "none";
  uint64_t cache_size = 8 * kMiB;
  uint64_t seed = 1;
  uint64_t interval_ms = 0;
  bool settle = false;
  bool progress = false;

  bool Loads() const { return phase != "run"; }
  bool Runs() const { return phase != "load"; }
};

// "reading user123: ..." where `status` is an error.
Status FromRocksDb(const rocksdb::Status& status, std::string_view verb, std::string_view name) {
  return status.ok() ? Status::Ok() : Status::IoError(fmt::format("{} {}: {}", verb, name, status.ToString()));
}

// --- Latencies ---

using Histograms = std::array<Histogram, kOperationKinds.size()>;

void Add(const Histogram::Snapshot& from, Histogram::Snapshot* to) {
  if (from.count == 0) return;
  to->buckets.resize(from.buckets.size());
  for (size_t i = 0; i < from.buckets.size(); ++i) to->buckets[i] += from.buckets[i];
  to->count += from.count;
  to->sum += from.sum;
  to->max = std::max(to->max, from.max);
}

// What was added between two snapshots of the same histogram; its max is to the precision of a bucket.
Histogram::Snapshot Difference(Histogram::Snapshot later, const Histogram::Snapshot& earlier) {
  for (size_t i = 0; i < earlier.buckets.size(); ++i) later.buckets[i] -= earlier.buckets[i];
  later.count -= earlier.count;
  later.sum -= earlier.sum;
  later.max = later.Percentile(100);
  return later;
}

double Microseconds(double ns) { return ns / kMicrosecondNs; }
double PercentileUs(const Histogram::Snapshot& latencies, double percent) {
  return Microseconds(static_cast<double>(latencies.Percentile(percent)));
}

Json LatencyJson(const Histogram::Snapshot& latencies) {
  Json json = {{"count", latencies.count}, {"mean", Microseconds(latencies.Mean())}};
  for (const double percent : {50.0, 95.0, 99.0, 99.9, 99.99, 99.999}) {
    json[fmt::format("p{}", percent)] = PercentileUs(latencies, percent);
  }
  json["max"] = Microseconds(static_cast<double>(latencies.max));
  return json;
}

// --- Clients ---

// Does operations on the database and measures them.
//
// Thread safety: one thread, beside which others may look at latencies().
class Client {
 public:
  Client(rocksdb::DB& db, size_t value_size, uint64_t seed) : db_(db), random_(seed), value_(value_size, '\0') {}

  Status Do(const Operation& operation);
  const Histograms& latencies() const { return latencies_; }

 private:
  Status Read(const std::string& key);
  Status Write(OperationKind kind, uint64_t record, const std::string& key);
  Status Scan(const std::string& key, uint64_t records);
  Status ReadModifyWrite(const std::string& key);

  template <typename Function>
  auto Measure(OperationKind kind, const Function& function) {
    const int64_t start_ns = MonotonicNs();
    auto result = function();
    latencies_[static_cast<size_t>(kind)].Add(static_cast<uint64_t>(MonotonicNs() - start_ns));
    return result;
  }

  rocksdb::DB& db_;
  Random random_;  // of values
  Histograms latencies_;
  std::string value_;
  rocksdb::PinnableSlice read_;
};

Status Client::Do(const Operation& operation) {
  const std::string key = KeyOf(operation.record);
  switch (operation.kind) {
    case OperationKind::kRead:
      return Read(key);
    case OperationKind::kUpdate:
    case OperationKind::kInsert:
      return Write(operation.kind, operation.record, key);
    case OperationKind::kScan:
      return Scan(key, operation.scan_records);
    case OperationKind::kReadModifyWrite:
      return ReadModifyWrite(key);
  }
  return Status::InvalidArgument("no such operation");
}

Status Client::Read(const std::string& key) {
  read_.Reset();
  const rocksdb::Status status = Measure(
      OperationKind::kRead, [&] { return db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), key, &read_); });
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(status, "reading", key));
  return CheckValue(key, read_.ToStringView(), value_.size());
}

Status Client::Write(OperationKind kind, uint64_t record, const std::string& key) {
  FillValue(record, random_, &value_);
  const rocksdb::Status status = Measure(kind, [&] { return db_.Put(rocksdb::WriteOptions(), key, value_); });
  return FromRocksDb(status, "writing", key);
}

// The check of what is found is measured, too: RocksDB reads while the iterator moves.
Status Client::Scan(const std::string& key, uint64_t records) {
  return Measure(OperationKind::kScan, [&] {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_.NewIterator(rocksdb::ReadOptions()));
    iterator->Seek(key);
    if (iterator->status().ok() && (!iterator->Valid() || iterator->key() != rocksdb::Slice(key))) {
      return Status::NotFound("scanning from " + key + ": it is not there");
    }
    for (uint64_t i = 0; i < records && iterator->Valid(); ++i, iterator->Next()) {
      ISOZONE_RETURN_IF_ERROR(
          CheckValue(iterator->key().ToStringView(), iterator->value().ToStringView(), value_.size()));
    }
    return FromRocksDb(iterator->status(), "scanning from", key);
  });
}

Status Client::ReadModifyWrite(const std::string& key) {
  return Measure(OperationKind::kReadModifyWrite, [&] {
    std::string value;
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_.Get(rocksdb::ReadOptions(), key, &value), "reading", key));
    ISOZONE_RETURN_IF_ERROR(CheckValue(key, value, value_.size()));
    FillField(random_, &value);
    return FromRocksDb(db_.Put(rocksdb::WriteOptions(), key, value), "writing", key);
  });
}

// --- A phase ---

// Does the next operation of a client.
using Step = std::function<Status(Client& client)>;

// Runs the clients of one phase, and meanwhile records intervals and shows progress.
class Phase {
 public:
  Phase(std::string_view name, const Arguments& arguments, uint64_t operations)
      : name_(name), arguments_(arguments), operations_(operations) {}

  // Client i does steps[i] as often as is its share of the operations. What was measured, as it is printed.
  Result<Json> Run(rocksdb::DB& db, SeedOf values, const std::vector<Step>& steps);

 private:
  void RunClient(Client& client, const Step& step, uint64_t operations);
  void Finish(const Status& status) ISOZONE_EXCLUDES(mutex_);
  Status Watch() ISOZONE_EXCLUDES(mutex_);
  void TakeInterval(int64_t now_ns);
  void ShowProgress(int64_t now_ns) const;
  Histogram::Snapshot LatenciesOf(OperationKind kind) const;
  Histogram::Snapshot AllLatencies() const;
  Json Report(int64_t end_ns) const;
  double SecondsAt(int64_t now_ns) const { return static_cast<double>(now_ns - start_ns_) / kSecondNs; }

  const std::string_view name_;
  const Arguments& arguments_;
  const uint64_t operations_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::vector<std::unique_ptr<Client>> clients_;
  int64_t start_ns_ = 0;
  Histogram::Snapshot before_interval_;
  Json intervals_ = Json::array();

  std::atomic<bool> stop_{false};
  Mutex mutex_;
  CondVar finished_;
  size_t running_ ISOZONE_GUARDED_BY(mutex_) = 0;
  int64_t end_ns_ ISOZONE_GUARDED_BY(mutex_) = 0;
  Status error_ ISOZONE_GUARDED_BY(mutex_);  // the first
};

Result<Json> Phase::Run(rocksdb::DB& db, SeedOf values, const std::vector<Step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    clients_.push_back(std::make_unique<Client>(db, arguments_.value_size, ClientSeed(arguments_.seed, values, i)));
  }
  {
    MutexLock lock(mutex_);
    running_ = steps.size();
  }
  start_ns_ = MonotonicNs();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto [first, last] = ShareOf(operations_, i, steps.size());
    threads.emplace_back(
        [this, &client = *clients_[i], &step = steps[i], count = last - first] { RunClient(client, step, count); });
  }
  const Status status = Watch();
  for (std::thread& thread : threads) thread.join();
  ISOZONE_RETURN_IF_ERROR(status);
  MutexLock lock(mutex_);
  if (arguments_.interval_ms > 0 && AllLatencies().count > before_interval_.count) TakeInterval(end_ns_);
  return Report(end_ns_);
}

void Phase::RunClient(Client& client, const Step& step, uint64_t operations) {
  Status status;
  for (uint64_t i = 0; i < operations && status.ok() && !stop_.load(std::memory_order_relaxed); ++i) {
    status = step(client);
  }
  Finish(status);
}

void Phase::Finish(const Status& status) {
  const int64_t now_ns = MonotonicNs();
  if (!status.ok()) stop_.store(true, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (error_.ok()) error_ = status;
  end_ns_ = std::max(end_ns_, now_ns);
  --running_;
  finished_.Signal();
}

Status Phase::Watch() {
  const int64_t interval_ns = static_cast<int64_t>(arguments_.interval_ms) * kMillisecondNs;
  int64_t next_progress_ns = start_ns_ + kProgressNs;
  int64_t next_interval_ns = start_ns_ + interval_ns;
  MutexLock lock(mutex_);
  while (running_ > 0) {
    finished_.WaitUntil(mutex_, interval_ns > 0 ? std::min(next_progress_ns, next_interval_ns) : next_progress_ns);
    MutexUnlock unlocked(mutex_);
    const int64_t now_ns = MonotonicNs();
    if (interval_ns > 0 && now_ns >= next_interval_ns) {
      TakeInterval(now_ns);
      while (next_interval_ns <= now_ns) next_interval_ns += interval_ns;
    }
    if (now_ns >= next_progress_ns) {
      ShowProgress(now_ns);
      next_progress_ns = now_ns + kProgressNs;
    }
  }
  if (terminal_) fmt::print(stderr, "{}", kEraseLine);
  return error_;
}

void Phase::TakeInterval(int64_t now_ns) {
  Histogram::Snapshot all = AllLatencies();
  const Histogram::Snapshot interval = Difference(all, before_interval_);
  before_interval_ = std::move(all);
  intervals_.push_back({{"t_s", SecondsAt(now_ns)},
                        {"operations", interval.count},
                        {"p50", PercentileUs(interval, 50)},
                        {"p99", PercentileUs(interval, 99)},
                        {"max", PercentileUs(interval, 100)}});
}

void Phase::ShowProgress(int64_t now_ns) const {
  if (!terminal_ && !arguments_.progress) return;
  const uint64_t done = AllLatencies().count;
  fmt::print(stderr, "{}{}: {} of {} operations, {:.0f}/s{}", terminal_ ? kEraseLine : "", name_, done, operations_,
             static_cast<double>(done) / SecondsAt(now_ns), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

Histogram::Snapshot Phase::LatenciesOf(OperationKind kind) const {
  Histogram::Snapshot sum;
  for (const auto& client : clients_) Add(client->latencies()[static_cast<size_t>(kind)].Take(), &sum);
  return sum;
}

Histogram::Snapshot Phase::AllLatencies() const {
  Histogram::Snapshot sum;
  for (const OperationKind kind : kOperationKinds) Add(LatenciesOf(kind), &sum);
  return sum;
}

Json Phase::Report(int64_t end_ns) const {
  Json latencies = Json::object();
  for (const OperationKind kind : kOperationKinds) {
    const Histogram::Snapshot snapshot = LatenciesOf(kind);
    if (snapshot.count > 0) latencies[std::string(NameOf(kind))] = LatencyJson(snapshot);
  }
  const double seconds = SecondsAt(end_ns);
  return Json{{"phase", name_},
              {"operations", operations_},
              {"seconds", seconds},
              {"throughput", static_cast<double>(operations_) / seconds},
              {"latency_us", std::move(latencies)},
              {"intervals", intervals_}};
}

// --- The database ---

// A database, however this version of RocksDB hands it out: open(DB**) before version 11, open(unique_ptr<DB>*) since.
template <typename OpenFunction>
rocksdb::Status OpenInto(std::unique_ptr<rocksdb::DB>* db, const OpenFunction& open) {
  if constexpr (requires { open(db); }) {
    return open(db);
  } else {
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status status = open(&raw);
    db->reset(raw);
    return status;
  }
}

rocksdb::Options OptionsOf(const Arguments& arguments, rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = arguments.cache_size == 0;
  if (arguments.cache_size > 0) table.block_cache = rocksdb::NewLRUCache(arguments.cache_size);
  rocksdb::Options options;
  options.env = env;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = arguments.write_buffer_size;
  options.max_background_jobs = arguments.max_background_jobs;
  options.target_file_size_base = arguments.target_file_size;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// The database of the arguments, made new for one phase or found by another, on their file system.
class Database {
 public:
  explicit Database(const Arguments& arguments) : arguments_(arguments) {}

  Status Open(bool create);
  // Waits until RocksDB has nothing left to flush or compact.
  Status Settle();
  Status Close();
  rocksdb::DB& db() { return *db_; }

 private:
  Status FindEnv();
  Result<uint64_t> Property(const std::string& name);
  Result<bool> IsIdle();

  const Arguments& arguments_;
  std::shared_ptr<rocksdb::Env> guard_;  // of env_; outlives db_
  rocksdb::Env* env_ = nullptr;
  std::unique_ptr<rocksdb::DB> db_;
};

Status Database::FindEnv() {
  if (env_ != nullptr) return Status::Ok();
  if (arguments_.fs_uri.empty()) {
    env_ = rocksdb::Env::Default();
    return Status::Ok();
  }
  rocksdb::ConfigOptions config;
  config.ignore_unsupported_options = false;  // else a file system that nobody brought is no error until it is used
  const rocksdb::Status status = rocksdb::Env::CreateFromUri(config, "", arguments_.fs_uri, &env_, &guard_);
  return FromRocksDb(status, "using", arguments_.fs_uri);
}

Status Database::Open(bool create) {
  ISOZONE_RETURN_IF_ERROR(FindEnv());
  rocksdb::Options options = OptionsOf(arguments_, env_);
  options.create_if_missing = create;
  options.error_if_exists = create;
  const auto open = [&](auto* out) -> decltype(rocksdb::DB::Open(options, arguments_.db, out)) {
    return rocksdb::DB::Open(options, arguments_.db, out);
  };
  return FromRocksDb(OpenInto(&db_, open), "opening", arguments_.db);
}

Status Database::Close() {
  const rocksdb::Status status = db_->Close();
  db_.reset();
  return FromRocksDb(status, "closing", arguments_.db);
}

Result<uint64_t> Database::Property(const std::string& name) {
  uint64_t value = 0;
  if (db_->GetIntProperty(name, &value)) return value;
  return Status::NotSupported("RocksDB does not know " + name);
}

Result<bool> Database::IsIdle() {
  using Properties = rocksdb::DB::Properties;
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t errors, Property(Properties::kBackgroundErrors));
  if (errors > 0) return Status::IoError("RocksDB failed to flush or compact; its LOG file says why");
  for (const std::string& name : {Properties::kMemTableFlushPending, Properties::kNumRunningFlushes,
                                  Properties::kCompactionPending, Properties::kNumRunningCompactions}) {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t work, Property(name));
    if (work > 0) return false;
  }
  return true;
}

// Work can turn from pending to running between two properties, so that one look may miss it.
Status Database::Settle() {
  for (int idle_looks = 0; idle_looks < 2; std::this_thread::sleep_for(kSettlePoll)) {
    ISOZONE_ASSIGN_OR_RETURN(const bool idle, IsIdle());
    idle_looks = idle ? idle_looks + 1 : 0;
  }
  return Status::Ok();
}

// --- The run ---

Result<Json> Load(rocksdb::DB& db, const Arguments& arguments) {
  std::vector<Step> steps;
  for (uint64_t i = 0; i < arguments.threads; ++i) {
    const uint64_t first = ShareOf(arguments.records, i, arguments.threads).first;
    steps.emplace_back([record = first](Client& client) mutable {
      return client.Do({.kind = OperationKind::kInsert, .record = record++});
    });
  }
  Phase phase("load", arguments, arguments.records);
  return phase.Run(db, SeedOf::kLoadedValues, steps);
}

Result<Json> RunWorkload(rocksdb::DB& db, const Arguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(const Workload workload, FindWorkload(arguments.workload));
  RecordCounter counter(arguments.records);
  std::vector<Step> steps;
  for (uint64_t i = 0; i < arguments.threads; ++i) {
    const uint64_t seed = ClientSeed(arguments.seed, SeedOf::kOperations, i);
    OperationStream stream(workload, arguments.operations, seed, counter);
    steps.emplace_back([stream, &counter](Client& client) mutable {
      const Operation operation = stream.Next();
      Status status = client.Do(operation);
      if (status.ok() && operation.kind == OperationKind::kInsert) counter.Acknowledge(operation.record);
      return status;
    });
  }
  Phase phase("run", arguments, arguments.operations);
  return phase.Run(db, SeedOf::kWrittenValues, steps);
}

// Settles where that is asked for, and notes in `phase` how long it took.
Status SettleInto(Database& database, const Arguments& arguments, Json* phase) {
  if (!arguments.settle) return Status::Ok();
  const int64_t start_ns = MonotonicNs();
  ISOZONE_RETURN_IF_ERROR(database.Settle());
  (*phase)["settle_seconds"] = static_cast<double>(MonotonicNs() - start_ns) / kSecondNs;
  return Status::Ok();
}

Result<Json> RunPhases(const Arguments& arguments) {
  Database database(arguments);
  Json phases = Json::array();
  if (arguments.Loads()) {
    ISOZONE_RETURN_IF_ERROR(database.Open(/*create=*/true));
    ISOZONE_ASSIGN_OR_RETURN(Json phase, Load(database.db(), arguments));
    ISOZONE_RETURN_IF_ERROR(SettleInto(database, arguments, &phase));
    ISOZONE_RETURN_IF_ERROR(database.Close());
    phases.push_back(std::move(phase));
  }
  if (arguments.Runs()) {
    Json settled = Json::object();
    ISOZONE_RETURN_IF_ERROR(database.Open(/*create=*/false));
    ISOZONE_RETURN_IF_ERROR(SettleInto(database, arguments, &settled));
    ISOZONE_ASSIGN_OR_RETURN(Json phase, RunWorkload(database.db(), arguments));
    ISOZONE_RETURN_IF_ERROR(database.Close());
    phase.update(settled);
    phases.push_back(std::move(phase));
  }
  return phases;
}

// --- The command line ---

Json OptionsJson(const Arguments& arguments) {
  return {{"fs_uri", arguments.fs_uri},
          {"db", arguments.db},
          {"phase", arguments.phase},
          {"records", arguments.records},
          {"operations", arguments.operations},
          {"threads", arguments.threads},
          {"value_size", arguments.value_size},
          {"write_buffer_size", arguments.write_buffer_size},
          {"max_background_jobs", arguments.max_background_jobs},
          {"target_file_size", arguments.target_file_size},
          {"compression", arguments.compression},
          {"cache_size", arguments.cache_size},
          {"interval_ms", arguments.interval_ms},
          {"settle", arguments.settle},
          {"rocksdb", fmt::format("{}.{}.{}", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH)}};
}

void AddSize(CLI::App& app, const std::string& name, uint64_t* bytes, uint64_t min, const std::string& help) {
  const std::string standard = FormatSize(*bytes);
  app.add_option_function<std::string>(
         name,
         [name, bytes, min](const std::string& text) {
           const auto size = ParseSize(text);
           if (!size.ok()) throw CLI::ValidationError(name, std::string(size.status().message()));
           if (*size < min) throw CLI::ValidationError(name, fmt::format("{} bytes are less than {}", *size, min));
           *bytes = *size;
         },
         help)
      ->option_text(fmt::format("SIZE [{}]", standard));
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--workload", arguments.workload, "a to f")->required();
  app.add_option("--db", arguments.db, "Path of the database")->required();
  app.add_option("--fs-uri", arguments.fs_uri, "File system of the database, by URI; the local one if not given");
  app.add_option("--phase", arguments.phase, "load (into a new database), run (on what was loaded) or load-and-run")
      ->check(CLI::IsMember({"load", "run", "load-and-run"}))
      ->capture_default_str();
  app.add_option("--records", arguments.records, "Records that are loaded")
      ->check(CLI::Range(uint64_t{1}, kMaxCount))
      ->capture_default_str();
  app.add_option("--operations", arguments.operations, "Operations of the run")
      ->check(CLI::Range(uint64_t{1}, kMaxCount))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "Clients at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  AddSize(app, "--value-size", &arguments.value_size, kMinValueSize, "Bytes of a value");
  AddSize(app, "--write-buffer-size", &arguments.write_buffer_size, 64 * kKiB, "Bytes of a memtable");
  app.add_option("--max-background-jobs", arguments.max_background_jobs, "Flushes and compactions at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  AddSize(app, "--target-file-size", &arguments.target_file_size, 64 * kKiB, "Bytes of a table of level 1");
  app.add_option("--compression", arguments.compression, "none: values are random")
      ->check(CLI::IsMember({"none"}))
      ->capture_default_str();
  AddSize(app, "--cache-size", &arguments.cache_size, 0, "Bytes of the block cache; 0: none");
  app.add_option("--seed", arguments.seed, "Of all that is random")->capture_default_str();
  app.add_option("--interval-ms", arguments.interval_ms, "Record a time series at this interval; 0: none")
      ->check(CLI::Range(uint64_t{0}, kMaxIntervalMs))
      ->capture_default_str();
  app.add_flag("--settle", arguments.settle, "Wait until compaction is done, after the load and before the run");
  app.add_flag("--progress", arguments.progress, "Show how far it is, even where standard error is no terminal");
}

int Fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "isozone_ycsb: {}\n", message);
  return 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Runs a core workload of YCSB on RocksDB, and prints throughput and latencies (microseconds) as JSON.\n"
      "For a file system that RocksDB does not have built in, preload its library: LD_PRELOAD=libisozone.so.",
      "isozone_ycsb");
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return Fail(fmt::format("{}; see isozone_ycsb --help", error.what()));
  }
  const Result<Workload> workload = FindWorkload(arguments.workload);
  if (!workload.ok()) return Fail(std::string(workload.status().message()));
  const Result<Json> phases = RunPhases(arguments);
  if (!phases.ok()) return Fail(std::string(phases.status().message()));
  const Json document = {{"workload", arguments.workload},
                         {"phase", *phases},
                         {"seed", arguments.seed},
                         {"options", OptionsJson(arguments)}};
  fmt::print("{}\n", document.dump(2));
  return std::fflush(stdout) == 0 ? 0 : Fail("cannot write to standard output");
}

}  // namespace
}  // namespace isozone::ycsb

int main(int argc, char** argv) {
  try {
    return isozone::ycsb::Main(argc, argv);
  } catch (const std::exception& error) {
    return isozone::ycsb::Fail(error.what());
  }
}
