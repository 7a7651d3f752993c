#include "rocksdb/steering/steered_databases.h"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/options_util.h>
#include <rocksdb/utilities/transaction_db.h>
#include <spdlog/sinks/ostream_sink.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/random.h"
#include "rocksdb/adapter/database_test_util.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/steering/steering_listener.h"
#include "rocksdb/steering/steering_partitioner.h"
#include "testing/assert_ok.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using testing::HasSubstr;

constexpr char kSteering[] =
    "listeners={id=isozone;compaction=ll;threads=2};compaction_style=kCompactionStyleNone;"
    "sst_partitioner_factory=isozone;";
constexpr char kSmallTree[] =
    "num_levels=4;write_buffer_size=65536;target_file_size_base=32768;max_bytes_for_level_base=131072;"
    "max_bytes_for_level_multiplier=4;level_compaction_dynamic_level_bytes=false;compression=kNoCompression;"
    "keep_log_file_num=3;";

// Calls `on_line` for each line, with its format.
class OverheardLogger : public rocksdb::LoggerWrapper {
 public:
  OverheardLogger(std::shared_ptr<rocksdb::Logger> target, std::function<void(std::string_view)> on_line)
      : LoggerWrapper(target.get()), target_(std::move(target)), on_line_(std::move(on_line)) {}
  using LoggerWrapper::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    on_line_(format);
    LoggerWrapper::Logv(level, format, arguments);
  }

 private:
  const std::shared_ptr<rocksdb::Logger> target_;
  const std::function<void(std::string_view)> on_line_;
};

class MeddlingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "MeddlingFileSystem"; }

  // Fails what RocksDB does after it has told of an open database: to keep its options.
  std::atomic<bool> refuses_options_files = false;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (refuses_options_files && to.find("OPTIONS-") != std::string::npos) return rocksdb::IOStatus::IOError(to);
    return FileSystemWrapper::RenameFile(from, to, options, debug);
  }

  // Holds compactions up until a flush waits for them.
  void HoldCompactions() {
    const MutexLock lock(mu_);
    holds_ = true;
  }
  void AwaitCompaction() {
    const MutexLock lock(mu_);
    while (held_ == 0) changed_.Wait(mu_);
  }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    if (RunningJob::OfThread().guide != nullptr) {
      const MutexLock lock(mu_);
      ++held_;
      changed_.SignalAll();
      while (holds_) changed_.Wait(mu_);
    }
    return FileSystemWrapper::NewWritableFile(name, options, result, debug);
  }
  rocksdb::IOStatus NewLogger(const std::string& name, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result, rocksdb::IODebugContext* debug) override {
    std::shared_ptr<rocksdb::Logger> logger;
    const rocksdb::IOStatus status = FileSystemWrapper::NewLogger(name, options, &logger, debug);
    if (!status.ok()) return status;
    *result = std::make_shared<OverheardLogger>(std::move(logger), [this](std::string_view format) {
      if (format.find("waiting on stall conditions to clear") == std::string_view::npos) return;
      const MutexLock lock(mu_);
      holds_ = false;
      changed_.SignalAll();
    });
    return status;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool holds_ ISOZONE_GUARDED_BY(mu_) = false;
  int held_ ISOZONE_GUARDED_BY(mu_) = 0;  // compactions, so far
};

// Before version 10 RocksDB opens a database all the same, unless it is told not to.
template <typename SomeOptions>
void FailWithoutOptionsFiles(SomeOptions& options) {
  if constexpr (requires { options.fail_if_options_file_error; }) options.fail_if_options_file_error = true;
}

class SteeredDatabasesTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "isozone_steered_databases." + std::to_string(getpid());
    std::filesystem::create_directory(directory_);
    auto fs = MakeEmulatedFileSystem(directory_, "zones=128&zone_size=4M");
    ASSERT_NE(fs, nullptr);
    fs_ = std::make_shared<MeddlingFileSystem>(std::move(fs));
    env_ = rocksdb::NewCompositeEnv(fs_);
    static const bool registered = (RegisterSteering(*rocksdb::ObjectLibrary::Default()), true);
    ASSERT_TRUE(registered);
    Log().sinks().push_back(sink_);
  }
  void TearDown() override {
    db_.reset();
    Log().sinks().pop_back();
    env_.reset();
    fs_.reset();
    std::filesystem::remove_all(directory_);
  }

  rocksdb::Status Parse(const std::string& text, rocksdb::Options* options) const {
    rocksdb::Options base;
    base.env = env_.get();
    base.create_if_missing = true;
    base.create_missing_column_families = true;
    return rocksdb::GetOptionsFromString(rocksdb::ConfigOptions(), base, text, options);
  }
  rocksdb::Options Options(const std::string& more = "") const {
    rocksdb::Options options;
    ISOZONE_EXPECT_OK(Parse(std::string(kSteering) + kSmallTree + more, &options));
    return options;
  }

  void OpenDb(const rocksdb::Options& options) { ISOZONE_ASSERT_OK(OpenInto(options, "/db", &db_)); }

  void Put(rocksdb::DB& db, int count, const rocksdb::WriteOptions& options = {}) {
    for (int i = 0; i < count; ++i) {
      ISOZONE_ASSERT_OK(db.Put(options, fmt::format("{:06}", random_.Below(5000)), std::string(200, 'v')));
    }
  }
  static uint64_t Compactions(rocksdb::DB& db) {
    ColumnFamilyDriver* const driver = SteeredDatabases::DriverOf(&db);
    return driver == nullptr ? 0 : driver->Stats().compactions;
  }
  // Fills the database until it has been compacted.
  void ExpectSteered(rocksdb::DB& db) {
    ColumnFamilyDriver* const driver = SteeredDatabases::DriverOf(&db);
    ASSERT_NE(driver, nullptr);
    const uint64_t before = driver->Stats().compactions;
    for (int i = 0; i < 10 && driver->Stats().compactions == before; ++i) {
      ASSERT_NO_FATAL_FAILURE(Put(db, 3000));
      ISOZONE_ASSERT_OK(db.Flush({}));
      ISOZONE_ASSERT_OK(driver->WaitUntilIdle());
    }
    EXPECT_GT(driver->Stats().compactions, before);
    EXPECT_EQ(driver->Stats().failed, 0U);
  }

  std::string InfoLog(const std::string& path = "/db/LOG") const {
    std::string text;
    ISOZONE_EXPECT_OK(rocksdb::ReadFileToString(env_.get(), path, &text));
    return text;
  }
  // What stands in both logs once the database is closed.
  void ExpectWarned(const std::string& line) {
    db_.reset();
    EXPECT_THAT(InfoLog(), HasSubstr(line));
    EXPECT_THAT(log_.str(), HasSubstr(line));
  }

  const uint64_t seed_ = TestSeed(20261124);
  const testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("ISOZONE_TEST_SEED={}", seed_)};
  Random random_{seed_};
  std::string directory_;
  std::shared_ptr<MeddlingFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_ = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
  std::unique_ptr<rocksdb::DB> db_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------------------------------------------------

TEST_F(SteeredDatabasesTest, UnknownPickersAndOptionsAreRefused) {
  rocksdb::Options options;
  const auto refusal = [&](const std::string& listener) {
    const rocksdb::Status status = Parse("listeners={id=isozone;" + listener + "}", &options);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    return status.ToString();
  };
  EXPECT_THAT(refusal("compaction=best"), HasSubstr("known: gear, greedy, isozone"));
  EXPECT_THAT(refusal("compaction=ll;threads=65"), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal("compaction=ll;threads=two"), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal("compaction=ll;t_zone=perhaps"), HasSubstr("t_zone"));
  EXPECT_THAT(refusal("compaction=ll;speed=9"),
              HasSubstr("no option speed=9; it has compaction=, threads=, t_zone= and dynamic_levels="));
  ISOZONE_EXPECT_OK(Parse("listeners={isozone}", &options));
  EXPECT_EQ(SteeringListener::In(options), nullptr);
  ISOZONE_EXPECT_OK(Parse("listeners={id=isozone;compaction=none}", &options));
  EXPECT_EQ(SteeringListener::In(options), nullptr);
  ISOZONE_EXPECT_OK(Parse("listeners={id=isozone;compaction=ll}", &options));
  EXPECT_NE(SteeringListener::In(options), nullptr);
}

TEST_F(SteeredDatabasesTest, TheOptionsFileOfADatabaseSteersItAgain) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  db_.reset();
  rocksdb::ConfigOptions config;
  config.env = env_.get();
  rocksdb::DBOptions db_options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  ISOZONE_ASSERT_OK(rocksdb::LoadLatestOptions(config, "/db", &db_options, &families));
  db_options.env = env_.get();
  ASSERT_NO_FATAL_FAILURE(OpenDb(rocksdb::Options(db_options, families[0].options)));
  ExpectSteered(*db_);
}

// ---------------------------------------------------------------------------------------------------------------------
// What is steered
// ---------------------------------------------------------------------------------------------------------------------

TEST_F(SteeredDatabasesTest, EveryPickerCompactsByItself) {
  for (const char* picker : {"leveled", "greedy", "gear", "ll", "isozone"}) {
    SCOPED_TRACE(picker);
    ASSERT_NO_FATAL_FAILURE(OpenDb(Options(fmt::format("listeners={{id=isozone;compaction={}}}", picker))));
    ExpectSteered(*db_);
    db_.reset();
    EXPECT_THAT(InfoLog(), HasSubstr(fmt::format("as the picker '{}' says", picker)));
    EXPECT_THAT(InfoLog(), HasSubstr(" compactions, "));
  }
  EXPECT_EQ(log_.str(), "");
}

// No write and no flush can begin there before something is compacted.
TEST_F(SteeredDatabasesTest, ADatabaseThatIsOpenedWithAFullLevel0TakesWrites) {
  rocksdb::Options options = Options(
      "listeners={isozone};level0_slowdown_writes_trigger=4;level0_stop_writes_trigger=4;"
      "disable_auto_compactions=true");
  ASSERT_NO_FATAL_FAILURE(OpenDb(options));
  for (int i = 0; i < 8; ++i) {
    ASSERT_NO_FATAL_FAILURE(Put(*db_, 10));
    ISOZONE_ASSERT_OK(db_->Flush({}));
  }
  db_.reset();
  options = Options("level0_slowdown_writes_trigger=4;level0_stop_writes_trigger=4");
  ASSERT_NO_FATAL_FAILURE(OpenDb(options));
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 1));
  ExpectSteered(*db_);
}

// RocksDB may flush after it has begun to close, and such a flush waits until there is room in level 0. Here two
// compactions have to make room.
TEST_F(SteeredDatabasesTest, AFlushAtTheEndIsWaitedForByTheDriver) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options("level0_file_num_compaction_trigger=1;level0_slowdown_writes_trigger=1")));
  fs_->HoldCompactions();
  rocksdb::FlushOptions at_once;
  at_once.allow_write_stall = true;
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 10));
  ISOZONE_ASSERT_OK(db_->Flush(at_once));
  fs_->AwaitCompaction();
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 10));
  ISOZONE_ASSERT_OK(db_->Flush(at_once));
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 10, unlogged));
  db_.reset();
}

TEST_F(SteeredDatabasesTest, DatabasesWithOneListenerAreSteeredEachByItself) {
  const rocksdb::Options options = Options();
  ASSERT_NO_FATAL_FAILURE(OpenDb(options));
  std::unique_ptr<rocksdb::DB> other;
  ISOZONE_ASSERT_OK(OpenInto(options, "/other", &other));
  EXPECT_NE(SteeredDatabases::DriverOf(db_.get()), SteeredDatabases::DriverOf(other.get()));
  ExpectSteered(*other);
  other.reset();
  ExpectSteered(*db_);
}

TEST_F(SteeredDatabasesTest, InfoLogsThatRollOrKeepSilentTellAllTheSame) {
  for (const char* log : {"max_log_file_size=2000", "log_file_time_to_roll=1", "info_log_level=FATAL_LEVEL",
                          "max_log_file_size=2000;info_log_level=FATAL_LEVEL"}) {
    SCOPED_TRACE(log);
    ASSERT_NO_FATAL_FAILURE(OpenDb(Options(log)));
    ExpectSteered(*db_);
    db_.reset();
  }
}

TEST_F(SteeredDatabasesTest, TransactionDatabasesAreSteeredOnceTheyAreComplete) {
  for (const auto policy : {rocksdb::WRITE_COMMITTED, rocksdb::WRITE_PREPARED, rocksdb::WRITE_UNPREPARED}) {
    SCOPED_TRACE(policy);
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = policy;
    rocksdb::TransactionDB* raw = nullptr;
    ISOZONE_ASSERT_OK(rocksdb::TransactionDB::Open(Options(), transactions, "/db", &raw));
    const std::unique_ptr<rocksdb::DB> db(raw);
    EXPECT_FALSE(db->GetOptions().disable_auto_compactions);
    for (int i = 0; i < 10 && Compactions(*db) == 0; ++i) {
      ASSERT_NO_FATAL_FAILURE(Put(*db, 3000));
      ISOZONE_ASSERT_OK(db->Flush({}));
      // While it was being opened, the driver was paused; it may not have noticed the end.
      rocksdb::Status idle = SteeredDatabases::DriverOf(db.get())->WaitUntilIdle();
      while (idle.IsIncomplete()) idle = SteeredDatabases::DriverOf(db.get())->WaitUntilIdle();
      ISOZONE_ASSERT_OK(idle);
    }
    EXPECT_GT(Compactions(*db), 0U);
  }
}

TEST_F(SteeredDatabasesTest, DisabledCompactionsPause) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options("disable_auto_compactions=true")));
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 5000));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  EXPECT_TRUE(SteeredDatabases::DriverOf(db_.get())->WaitUntilIdle().IsIncomplete());
  EXPECT_EQ(Compactions(*db_), 0U);
  ISOZONE_ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  ColumnFamilyDriver* const driver = SteeredDatabases::DriverOf(db_.get());
  while (driver->WaitUntilIdle().IsIncomplete()) continue;
  ExpectSteered(*db_);
}

TEST_F(SteeredDatabasesTest, InstancesThatOnlyReadHaveNoDriver) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 100));
  std::unique_ptr<rocksdb::DB> reader;
  const auto open = [&](auto* out) -> decltype(rocksdb::DB::OpenForReadOnly(Options(), "/db", out)) {
    return rocksdb::DB::OpenForReadOnly(Options(), "/db", out);
  };
  const auto follow = [&](auto* out) -> decltype(rocksdb::DB::OpenAsSecondary(Options(), "/db", "/follower", out)) {
    return rocksdb::DB::OpenAsSecondary(Options("max_open_files=-1"), "/db", "/follower", out);
  };
  const auto into = [&](const auto& function) {
    if constexpr (requires { function(&reader); }) {
      return function(&reader);
    } else {
      rocksdb::DB* raw = nullptr;
      const rocksdb::Status status = function(&raw);
      reader.reset(raw);
      return status;
    }
  };
  ISOZONE_ASSERT_OK(into(open));
  EXPECT_EQ(SteeredDatabases::DriverOf(reader.get()), nullptr);
  reader.reset();
  ISOZONE_ASSERT_OK(into(follow));
  EXPECT_EQ(SteeredDatabases::DriverOf(reader.get()), nullptr);
  reader.reset();
  ExpectSteered(*db_);
}

TEST_F(SteeredDatabasesTest, OtherColumnFamiliesKeepRocksDBsCompactionAndOneLineSaysSo) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ISOZONE_ASSERT_OK(db_->CreateColumnFamily(Options("compaction_style=kCompactionStyleLevel"), "other", &other));
  for (int i = 0; i < 2; ++i) {
    ISOZONE_ASSERT_OK(db_->Put({}, other, "key", "value"));
    ISOZONE_ASSERT_OK(db_->Flush({}, other));
  }
  ExpectSteered(*db_);
  ISOZONE_ASSERT_OK(db_->DestroyColumnFamilyHandle(other));
  db_.reset();
  const std::string log = InfoLog();
  const size_t said = log.find("'other' and others keep RocksDB's own compaction");
  ASSERT_NE(said, std::string::npos);
  EXPECT_EQ(log.find("'other' and others", said + 1), std::string::npos);
}

TEST_F(SteeredDatabasesTest, AColumnFamilyHasOneDriver) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  ASSERT_NE(SteeredDatabases::DriverOf(db_.get()), nullptr);
  std::unique_ptr<ColumnFamilyDriver> second;
  EXPECT_THAT(ColumnFamilyDriver::Open(db_.get(), db_->DefaultColumnFamily(), {}, &second).ToString(),
              HasSubstr("has a driver already"));
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ISOZONE_ASSERT_OK(db_->CreateColumnFamily(Options(), "other", &other));
  ISOZONE_EXPECT_OK(ColumnFamilyDriver::Open(db_.get(), other, {}, &second));
  second.reset();
  ISOZONE_ASSERT_OK(db_->DestroyColumnFamilyHandle(other));
  ExpectSteered(*db_);
}

TEST_F(SteeredDatabasesTest, ShortLivedTablesHaveZonesOfTheirOwnUnlessTheOptionsSayOtherwise) {
  for (const bool t_zone : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(OpenDb(Options(fmt::format("listeners={{id=isozone;compaction=ll;t_zone={}}}", t_zone))));
    ColumnFamilyDriver* const driver = SteeredDatabases::DriverOf(db_.get());
    ASSERT_NE(driver, nullptr);
    for (int i = 0; i < 20 && driver->Stats().short_lived_bytes == 0; ++i) ExpectSteered(*db_);
    EXPECT_GT(driver->Stats().short_lived_bytes, 0U);
    EXPECT_EQ(driver->Stats().t_zones_most > 0, t_zone);
    db_.reset();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// What cannot be steered
// ---------------------------------------------------------------------------------------------------------------------

TEST_F(SteeredDatabasesTest, ADatabaseThatNothingWouldCompactIsNotOpened) {
  const auto refusal = [this](const rocksdb::Options& options) {
    const rocksdb::Status status = OpenInto(options, "/db", &db_);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    return status.ToString();
  };
  EXPECT_THAT(refusal(Options("num_levels=2")), HasSubstr("set num_levels=7"));
  rocksdb::Options behind = Options();
  behind.allow_ingest_behind = true;
  EXPECT_THAT(refusal(behind), HasSubstr("allow_ingest_behind=true keeps the last level"));
  rocksdb::Options elsewhere = Options();
  elsewhere.env = rocksdb::Env::Default();
  EXPECT_THAT(refusal(elsewhere), HasSubstr("not on Isozone's file system"));
  rocksdb::Options logged = Options();
  ISOZONE_ASSERT_OK(rocksdb::Env::Default()->NewLogger(directory_ + "/LOG", &logged.info_log));
  EXPECT_THAT(refusal(logged), HasSubstr("leave info_log unset"));
  // Isozone's own will do.
  ISOZONE_ASSERT_OK(fs_->target()->NewLogger("/LOG", rocksdb::IOOptions(), &logged.info_log, nullptr));
  ASSERT_NO_FATAL_FAILURE(OpenDb(logged));
  ExpectSteered(*db_);
}

TEST_F(SteeredDatabasesTest, ADatabaseThatRocksDBCompactsGoesOnSo) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options("compaction_style=kCompactionStyleLevel")));
  EXPECT_EQ(SteeredDatabases::DriverOf(db_.get()), nullptr);
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 10'000));
  ISOZONE_ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ExpectWarned("open it with compaction_style=kCompactionStyleNone");
}

TEST_F(SteeredDatabasesTest, WithoutAPartitionerOnlyCutsAreMissing) {
  for (const char* picker : {"leveled", "greedy", "gear", "ll", "isozone"}) {
    SCOPED_TRACE(picker);
    rocksdb::Options options = Options(fmt::format("listeners={{id=isozone;compaction={}}}", picker));
    options.sst_partitioner_factory.reset();
    ASSERT_NO_FATAL_FAILURE(OpenDb(options));
    ExpectSteered(*db_);
    ExpectWarned("set sst_partitioner_factory=isozone");
  }
}

TEST_F(SteeredDatabasesTest, ADatabaseThatIsNotToldOfIsNotSteeredAndOneLineSaysWhy) {
  rocksdb::Options options = Options();
  options.sst_partitioner_factory.reset();
  ISOZONE_ASSERT_OK(rocksdb::Env::Default()->NewLogger(directory_ + "/LOG", &options.info_log));
  ASSERT_NO_FATAL_FAILURE(OpenDb(options));
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 1));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  EXPECT_EQ(SteeredDatabases::DriverOf(db_.get()), nullptr);
  db_.reset();
  EXPECT_THAT(log_.str(), HasSubstr("leave info_log unset"));

  options = Options();
  options.sst_partitioner_factory.reset();
  options.env = rocksdb::Env::Default();
  ISOZONE_ASSERT_OK(OpenInto(options, directory_ + "/db", &db_));
  ASSERT_NO_FATAL_FAILURE(Put(*db_, 1));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  EXPECT_EQ(SteeredDatabases::DriverOf(db_.get()), nullptr);
  db_.reset();
  EXPECT_THAT(log_.str(), HasSubstr("not on Isozone's file system"));
}

TEST_F(SteeredDatabasesTest, ADatabaseThatWasDestroyedBeginsAnew) {
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  ExpectSteered(*db_);
  db_.reset();
  ISOZONE_ASSERT_OK(rocksdb::DestroyDB("/db", Options()));
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  ExpectSteered(*db_);
}

// A listener belongs to the database that it is in, and not to the next one that the thread opens.
TEST_F(SteeredDatabasesTest, ADatabaseWithoutAListenerIsLeftAlone) {
  rocksdb::Options plain = Options();
  plain.listeners.clear();
  ASSERT_NO_FATAL_FAILURE(OpenDb(Options()));
  std::unique_ptr<rocksdb::DB> other;
  ISOZONE_ASSERT_OK(OpenInto(plain, "/other", &other));
  EXPECT_EQ(SteeredDatabases::DriverOf(other.get()), nullptr);
  other.reset();
  db_.reset();
  ASSERT_NO_FATAL_FAILURE(OpenDb(plain));
  EXPECT_EQ(SteeredDatabases::DriverOf(db_.get()), nullptr);
}

// ---------------------------------------------------------------------------------------------------------------------
// The end of a database
// ---------------------------------------------------------------------------------------------------------------------

// A database that is opened and ended again and again, in every way, while it is compacted.
class Restless {
 public:
  enum class End { kDestroyed, kClosed, kCancelled, kCancelledAndAwaited, kNeverOpened };
  static constexpr End kEnds[] = {End::kDestroyed, End::kClosed, End::kCancelled, End::kCancelledAndAwaited,
                                  End::kNeverOpened};

  Restless(std::string path, std::optional<rocksdb::TxnDBWritePolicy> policy, MeddlingFileSystem& fs, Random& random)
      : path_(std::move(path)), policy_(policy), fs_(fs), random_(random) {}

  void OpenAndEnd(const rocksdb::Options& options, End end) {
    fs_.refuses_options_files = end == End::kNeverOpened;
    const rocksdb::Status opened = Open(options);
    fs_.refuses_options_files = false;
    if (end == End::kNeverOpened) {
      ASSERT_TRUE(opened.IsIOError()) << opened.ToString();
      return;
    }
    ISOZONE_ASSERT_OK(opened);
    for (uint64_t i = random_.Below(400); i > 0; --i) {
      const std::string key = fmt::format("{:06}", random_.Below(5000));
      model_[key] = fmt::format("{:0200}", random_.Next());
      ISOZONE_ASSERT_OK(db_->Put({}, key, model_[key]));
    }
    // RocksDB destroys a database of prepared transactions under its own compactions if nobody has awaited them.
    const bool awaited = end == End::kCancelledAndAwaited || policy_ == rocksdb::WRITE_PREPARED;
    if (end == End::kCancelled || end == End::kCancelledAndAwaited) {
      rocksdb::CancelAllBackgroundWork(db_.get(), awaited);
    }
    if (end == End::kClosed) {
      const rocksdb::Status closed = db_->Close();
      // The snapshot that a compaction takes of prepared transactions keeps a database open, as any other does.
      EXPECT_TRUE(closed.ok() || (policy_ == rocksdb::WRITE_PREPARED && closed.IsAborted())) << closed.ToString();
    }
    db_.reset();
  }

  void ExpectAsInModel(const rocksdb::Options& options) {
    ISOZONE_ASSERT_OK(Open(options));
    ISOZONE_EXPECT_OK(db_->VerifyChecksum());
    std::map<std::string, std::string> found;
    {
      const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
      for (it->SeekToFirst(); it->Valid(); it->Next()) found[it->key().ToString()] = it->value().ToString();
      ISOZONE_EXPECT_OK(it->status());
    }
    EXPECT_TRUE(found == model_) << found.size() << " keys instead of " << model_.size();
    db_.reset();
  }

 private:
  rocksdb::Status Open(const rocksdb::Options& options) {
    if (!policy_) return OpenInto(options, path_, &db_);
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = *policy_;
    rocksdb::TransactionDB* raw = nullptr;
    const rocksdb::Status status = rocksdb::TransactionDB::Open(options, transactions, path_, &raw);
    db_.reset(raw);
    return status;
  }

  const std::string path_;
  const std::optional<rocksdb::TxnDBWritePolicy> policy_;
  MeddlingFileSystem& fs_;
  Random& random_;
  std::unique_ptr<rocksdb::DB> db_;
  std::map<std::string, std::string> model_;
};

uint64_t Rounds(uint64_t few) {
  const char* given = std::getenv("ISOZONE_STEERING_ROUNDS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : few;
}

// ISOZONE_STEERING_ROUNDS asks for more of them. Each database finds something to compact as soon as it is open, namely
// what it recovers. A neighbour with the same listener stays open and is compacted all along.
TEST_F(SteeredDatabasesTest, DatabasesEndInEveryWayUnderLoad) {
  const rocksdb::Options shared = Options("level0_file_num_compaction_trigger=1");
  ASSERT_NO_FATAL_FAILURE(OpenDb(shared));
  Restless databases[] = {{"/plain", std::nullopt, *fs_, random_},
                          {"/committed", rocksdb::WRITE_COMMITTED, *fs_, random_},
                          {"/prepared", rocksdb::WRITE_PREPARED, *fs_, random_}};
  for (uint64_t round = 0; round < Rounds(120) && !HasFatalFailure(); ++round) {
    rocksdb::Options options = shared;
    FailWithoutOptionsFiles(options);
    if (random_.Chance(0.2)) options.max_log_file_size = 4000;
    if (random_.Chance(0.2)) options.info_log_level = rocksdb::FATAL_LEVEL;
    if (random_.Chance(0.2)) options.avoid_flush_during_shutdown = true;
    if (random_.Chance(0.2)) options.hard_pending_compaction_bytes_limit = 64 << 10;  // holds flushes
    if (random_.Chance(0.5)) options.listeners = Options("listeners={id=isozone;compaction=isozone}").listeners;
    Put(*db_, 100);
    databases[random_.Below(3)].OpenAndEnd(options, Restless::kEnds[random_.Below(5)]);
  }
  for (Restless& database : databases) database.ExpectAsInModel(shared);
  ExpectSteered(*db_);
}

}  // namespace
}  // namespace isozone
