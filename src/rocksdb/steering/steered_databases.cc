#include "rocksdb/steering/steered_databases.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/uri_file_system.h"
#include "rocksdb/steering/driver_settings.h"

namespace isozone {
namespace {

// In the database's info log and in Isozone's. Not under the lock of the info log.
void WarnOf(rocksdb::DB* db, const std::string& line) {
  rocksdb::Warn(db->GetDBOptions().info_log, "isozone: %s", line.c_str());
  Log().warn("database {}: {}", db->GetName(), line);
}

constexpr std::string_view kNotTold =
    "its info log has not told that it is open; leave info_log unset and the names of files as they are, or make an "
    "isozone::CompactionDriver";

// A database from Opened, or from its first flush if it was not told of, to Closing.
class SteeredDatabase {
 public:
  explicit SteeredDatabase(rocksdb::DB* db) : db_(db) {}
  SteeredDatabase(const SteeredDatabase&) = delete;
  SteeredDatabase& operator=(const SteeredDatabase&) = delete;

  // Before other threads know of it.
  void BeginToSteer(const ColumnFamilyDriverOptions& options) {
    told_of_ = true;
    auto starter = StartThread("the compactions of a database", [this, options] {
      const rocksdb::IOStatus status = WithoutExceptions([&] {
        Start(options);
        return rocksdb::IOStatus::OK();
      });
      if (!status.ok()) Log().error("a database is not steered: {}", status.ToString());
    });
    if (starter.ok()) {
      starter_ = std::move(starter).value();
    } else {
      Log().error("a database is not steered: {}", starter.status().message());
    }
  }

  // Returns when no thread of the driver is left, whoever else may be stopping it.
  void Stop() {
    std::call_once(stop_, [this] {
      if (Driver() == nullptr) return;
      driver_->Stop();
      const ColumnFamilyDriverStats stats = driver_->Stats();
      const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
      rocksdb::Info(db_->GetDBOptions().info_log,
                    "isozone: %llu compactions, %llu refused, %llu failed, %llu bytes read, %llu bytes written",
                    number(stats.compactions), number(stats.refused), number(stats.failed), number(stats.bytes_read),
                    number(stats.bytes_written));
    });
  }

  void Flushed(const rocksdb::FlushJobInfo& info) {
    if (!told_of_) {
      std::call_once(said_, [this] {
        std::string why = WhyTablesAreElsewhere(*db_->GetFileSystem());
        if (why.empty()) why = kNotTold;
        WarnOf(db_, "the listener cannot steer this database: " + why);
      });
    } else if (info.cf_id != 0) {
      std::call_once(said_, [&] {
        rocksdb::Info(db_->GetDBOptions().info_log,
                      "isozone: the listener steers column family 'default' alone; '%s' and others keep RocksDB's own "
                      "compaction, so they must not have compaction_style=kCompactionStyleNone",
                      info.cf_name.c_str());
      });
    }
  }

  // The driver; null: it has none. It does not compact any more once it has been stopped.
  ColumnFamilyDriver* Driver() {
    std::call_once(started_, [this] {
      if (starter_.joinable()) starter_.join();
    });
    return driver_.get();
  }

 private:
  void Start(ColumnFamilyDriverOptions options) {
    const rocksdb::DBOptions db_options = db_->GetDBOptions();
    if (options.threads == 0) options.threads = DriverThreads(db_options);
    rocksdb::ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
    const rocksdb::Status status = ColumnFamilyDriver::Open(db_, family, options, &driver_);
    if (!status.ok()) {
      WarnOf(db_, "the listener cannot steer this database: " + status.ToString());
      return;
    }
    if (!HasPartitioner(db_->GetOptions(family))) {
      WarnOf(db_, "tables are not cut where the picker says; set sst_partitioner_factory=isozone");
    }
    rocksdb::Info(db_options.info_log,
                  "isozone: compacts column family 'default' as the picker '%s' says, on %u threads",
                  options.picker.c_str(), options.threads);
  }

  rocksdb::DB* const db_;
  bool told_of_ = false;                        // set before other threads know of this
  std::thread starter_;                         // set before other threads know of this
  std::unique_ptr<ColumnFamilyDriver> driver_;  // set by the starter, which Driver awaits
  std::once_flag started_;
  std::once_flag stop_;
  std::once_flag said_;  // what is not steered
};

struct SteeringRegistry {
  Mutex mu;
  // By RocksDB's own handle of the default column family.
  std::map<const rocksdb::ColumnFamilyHandle*, std::shared_ptr<SteeredDatabase>> databases ISOZONE_GUARDED_BY(mu);
};
// Never destroyed: databases may be closed when static objects are destroyed.
SteeringRegistry& TheDatabases() {
  static SteeringRegistry& registry = *new SteeringRegistry;
  return registry;
}

// They stay known, so that a thread which closes one now waits for its end here.
void StopAll() {
  std::vector<std::shared_ptr<SteeredDatabase>> databases;
  {
    SteeringRegistry& registry = TheDatabases();
    const MutexLock lock(registry.mu);
    for (const auto& [handle, database] : registry.databases) databases.push_back(database);
  }
  for (const auto& database : databases) database->Stop();
}

// The handler belongs to the process in which it was registered: a forked child has none of the threads.
void StopAllAtExit() {
  static const pid_t owner = getpid();
  static const int registered = std::atexit([] {
    if (getpid() == owner) StopAll();
  });
  static_cast<void>(registered);
}

}  // namespace

void SteeredDatabases::Opened(rocksdb::DB* db, const ColumnFamilyDriverOptions& options) {
  if (!UriFileSystem::IsOurs(*db->GetFileSystem())) return;
  StopAllAtExit();
  auto database = std::make_shared<SteeredDatabase>(db);
  SteeringRegistry& registry = TheDatabases();
  const MutexLock lock(registry.mu);
  database->BeginToSteer(options);
  registry.databases[db->DefaultColumnFamily()] = std::move(database);
}

void SteeredDatabases::Closing(const rocksdb::ColumnFamilyHandle* handle) {
  SteeringRegistry& registry = TheDatabases();
  std::shared_ptr<SteeredDatabase> database;
  {
    const MutexLock lock(registry.mu);
    const auto found = registry.databases.find(handle);
    if (found == registry.databases.end()) return;
    database = std::move(found->second);
    registry.databases.erase(found);
  }
  database->Stop();
}

void SteeredDatabases::Flushed(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  std::shared_ptr<SteeredDatabase> database;
  {
    SteeringRegistry& registry = TheDatabases();
    const MutexLock lock(registry.mu);
    auto& known = registry.databases[db->DefaultColumnFamily()];
    if (known == nullptr) known = std::make_shared<SteeredDatabase>(db);
    database = known;
  }
  database->Flushed(info);
}

ColumnFamilyDriver* SteeredDatabases::DriverOf(rocksdb::DB* db) {
  std::shared_ptr<SteeredDatabase> database;
  {
    SteeringRegistry& registry = TheDatabases();
    const MutexLock lock(registry.mu);
    const auto found = registry.databases.find(db->GetRootDB()->DefaultColumnFamily());
    if (found == registry.databases.end()) return nullptr;
    database = found->second;
  }
  return database->Driver();
}

}  // namespace isozone
