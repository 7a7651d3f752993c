#include "rocksdb/steering/column_family_driver.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "rocksdb/adapter/database_test_util.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/steering/steering_listener.h"
#include "rocksdb/steering/steering_partitioner.h"
#include "testing/manual_clock.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

class ColumnFamilyDriverTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "isozone_column_family_driver." + std::to_string(getpid());
    std::filesystem::remove_all(directory_);
    options_.create_if_missing = true;
    options_.compaction_style = rocksdb::kCompactionStyleNone;
    options_.num_levels = 4;
    options_.write_buffer_size = 64 << 10;
    options_.target_file_size_base = 32 << 10;
    options_.max_bytes_for_level_base = 128 << 10;
    options_.max_bytes_for_level_multiplier = 4;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.compression = rocksdb::kNoCompression;
    options_.listeners = {std::make_shared<SteeringListener>()};
    options_.sst_partitioner_factory = std::make_shared<SteeringPartitionerFactory>();
  }
  void TearDown() override {
    driver_.reset();
    db_.reset();
    std::filesystem::remove_all(directory_);
  }

  void OpenDb() {
    const rocksdb::Status status = OpenInto(options_, directory_, &db_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  rocksdb::Status Drive(const ColumnFamilyDriverOptions& options) {
    return ColumnFamilyDriver::Open(db_.get(), db_->DefaultColumnFamily(), options, &driver_);
  }
  std::string Refusal(const ColumnFamilyDriverOptions& options) {
    const rocksdb::Status status = Drive(options);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    return status.ToString();
  }

  // Flushes as many files to level 0 as trigger a compaction.
  void FillLevel0() {
    for (int file = 0; file < options_.level0_file_num_compaction_trigger; ++file) {
      Change(200);
      ASSERT_TRUE(db_->Flush({}).ok());
    }
  }
  // Starts the driver, and a flush, which the driver holds back when this returns.
  void HoldAFlush() {
    ASSERT_TRUE(Drive({}).ok());
    Change(100);
    rocksdb::FlushOptions at_once;
    at_once.wait = false;
    ASSERT_TRUE(db_->Flush(at_once).ok());
    while (driver_->Stats().held_flushes == 0) std::this_thread::yield();
  }
  // Puts, overwrites and deletes at random; `model_` is told.
  void Change(int operations) {
    for (int i = 0; i < operations; ++i) {
      const std::string key = fmt::format("{:06}", random_.Below(5000));
      if (random_.Chance(0.1)) {
        ASSERT_TRUE(db_->Delete({}, key).ok());
        model_.erase(key);
      } else {
        const std::string value(random_.Between(10, 300), static_cast<char>('a' + random_.Below(26)));
        ASSERT_TRUE(db_->Put({}, key, value).ok());
        model_[key] = value;
      }
    }
  }
  void ExpectAsInModel() {
    std::map<std::string, std::string> found;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
    for (it->SeekToFirst(); it->Valid(); it->Next()) found[it->key().ToString()] = it->value().ToString();
    ASSERT_TRUE(it->status().ok());
    EXPECT_TRUE(found == model_) << found.size() << " keys instead of " << model_.size();
  }
  // No level is larger than it is to be from level 1 down, but for the last one.
  void ExpectInShape() {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    EXPECT_LT(metadata.levels[0].files.size(), static_cast<size_t>(options_.level0_file_num_compaction_trigger));
    uint64_t limit = options_.max_bytes_for_level_base;
    for (size_t level = 1; level + 1 < metadata.levels.size(); ++level, limit *= 4) {
      EXPECT_LE(metadata.levels[level].size, limit) << "level " << level;
    }
    EXPECT_GT(metadata.levels[2].files.size() + metadata.levels[3].files.size(), 0U);
  }

  const uint64_t seed_ = TestSeed(20261124);
  const testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("ISOZONE_TEST_SEED={}", seed_)};
  Random random_{seed_};
  std::string directory_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<ColumnFamilyDriver> driver_;
  std::map<std::string, std::string> model_;
};

TEST_P(ColumnFamilyDriverTest, KeepsTheTreeInShapeAndEveryKey) {
  for (const uint32_t threads : {1, 3}) {
    ASSERT_NO_FATAL_FAILURE(OpenDb());
    ASSERT_TRUE(Drive({.picker = GetParam(), .threads = threads, .dynamic_levels = false}).ok());
    Change(30'000);
    ASSERT_TRUE(db_->Flush({}).ok());
    const rocksdb::Status idle = driver_->WaitUntilIdle();
    ASSERT_TRUE(idle.ok()) << idle.ToString();
    EXPECT_GT(driver_->Stats().compactions, 10U);
    EXPECT_EQ(driver_->Stats().failed, 0U);
    ExpectInShape();
    ExpectAsInModel();
    driver_.reset();
    db_.reset();
  }
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ExpectAsInModel();
}

TEST_P(ColumnFamilyDriverTest, FindsWhatOthersHaveChanged) {
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_TRUE(Drive({.picker = GetParam(), .threads = 2}).ok());
  for (int round = 0; round < 5; ++round) {
    Change(8'000);
    const rocksdb::Slice begin("001000");
    const rocksdb::Slice end("001999");
    ASSERT_TRUE(rocksdb::DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end, false).ok());
    ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "001000", "001999").ok());
    model_.erase(model_.lower_bound("001000"), model_.lower_bound("001999"));
  }
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  ExpectAsInModel();
}

TEST_P(ColumnFamilyDriverTest, SizesLevelsFromTheLastOneUp) {
  options_.num_levels = 5;
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_TRUE(Drive({.picker = GetParam(), .threads = 2}).ok());
  Change(30'000);
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  const uint64_t last = metadata.levels[4].size;
  EXPECT_GT(last, metadata.size / 2);
  EXPECT_LE(metadata.levels[3].size, std::max<uint64_t>(options_.max_bytes_for_level_base, last / 2));
  EXPECT_TRUE(metadata.levels[1].files.empty());
  ExpectAsInModel();
}

INSTANTIATE_TEST_SUITE_P(Pickers, ColumnFamilyDriverTest, testing::Values("leveled", "greedy", "ll", "isozone"));

TEST_F(ColumnFamilyDriverTest, HeedsOptionsThatChange) {
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_TRUE(Drive({}).ok());
  ASSERT_TRUE(db_->SetOptions({{"level0_file_num_compaction_trigger", "1"}}).ok());
  Change(100);
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  EXPECT_TRUE(metadata.levels[0].files.empty());
  ExpectAsInModel();
}

// Fails to create the outputs of steered compactions, and notes when one was tried.
class FailingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "failing"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (RunningJob::OfThread().guide == nullptr) return target()->NewWritableFile(name, options, file, debug);
    const MutexLock lock(mu_);
    tries_ns_.push_back(MonotonicNs());
    tried_.SignalAll();
    // Of all errors, RocksDB takes this one for a matter of the compaction alone.
    rocksdb::IOStatus passing = rocksdb::IOStatus::IOError("busy");
    passing.SetRetryable(true);
    return passing;
  }
  std::vector<int64_t> AwaitTries(size_t count) {
    const MutexLock lock(mu_);
    while (tries_ns_.size() < count) tried_.Wait(mu_);
    return tries_ns_;
  }

 private:
  Mutex mu_;
  CondVar tried_;
  std::vector<int64_t> tries_ns_ ISOZONE_GUARDED_BY(mu_);
};

TEST_F(ColumnFamilyDriverTest, MovesTablesWhereRocksDbCan) {
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_TRUE(Drive({}).ok());
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = fmt::format("{:06}", i);
    model_[key] = std::string(100, 'x');
    ASSERT_TRUE(db_->Put({}, key, model_[key]).ok());
  }
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  const ColumnFamilyDriverStats stats = driver_->Stats();
  EXPECT_EQ(stats.tables_moved > 0, ISOZONE_ROCKSDB_AT_LEAST(10, 8));
  // Each key is written when it leaves level 0, and not again.
  if (stats.tables_moved > 0) {
    EXPECT_LT(stats.bytes_written, 10'000U * 150);
  }
  ExpectInShape();
  ExpectAsInModel();
}

TEST_F(ColumnFamilyDriverTest, PausesTwiceAsLongAfterEachFailure) {
  const auto failing = std::make_shared<FailingFileSystem>(rocksdb::FileSystem::Default());
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(failing);
  options_.env = env.get();
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  for (int file = 0; file < options_.level0_file_num_compaction_trigger; ++file) {
    Change(100);
    ASSERT_TRUE(db_->Flush({}).ok());
  }
  ASSERT_TRUE(Drive({}).ok());
  const std::vector<int64_t> tries_ns = failing->AwaitTries(8);
  driver_.reset();
  db_.reset();
  int64_t pause_ns = ColumnFamilyDriver::kPauseNs;
  for (size_t i = 1; i < tries_ns.size(); ++i, pause_ns *= 2) {
    EXPECT_GE(tries_ns[i] - tries_ns[i - 1], std::min(pause_ns, ColumnFamilyDriver::kPauseMostNs)) << i;
  }
}

// Keeps steered compactions from beginning an output until they are let go.
class GatedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "gated"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (RunningJob::OfThread().guide != nullptr) {
      const MutexLock lock(mu_);
      while (!open_) opened_.Wait(mu_);
    }
    return target()->NewWritableFile(name, options, file, debug);
  }
  void Open() {
    const MutexLock lock(mu_);
    open_ = true;
    opened_.SignalAll();
  }

 private:
  Mutex mu_;
  CondVar opened_;
  bool open_ ISOZONE_GUARDED_BY(mu_) = false;
};

TEST_F(ColumnFamilyDriverTest, HoldsFlushesBackWhileThereIsTooMuchDebt) {
  const auto gated = std::make_shared<GatedFileSystem>(rocksdb::FileSystem::Default());
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(gated);
  options_.env = env.get();
  options_.hard_pending_compaction_bytes_limit = 32 << 10;
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_NO_FATAL_FAILURE(FillLevel0());
  ASSERT_NO_FATAL_FAILURE(HoldAFlush());
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  EXPECT_EQ(metadata.levels[0].files.size(), static_cast<size_t>(options_.level0_file_num_compaction_trigger));
  gated->Open();
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  ExpectAsInModel();
  driver_.reset();
  db_.reset();
}

// RocksDB lets a program go on after its flush before it tells the listeners, which may be at any time later.
class DeafListener : public SteeringListener {
 public:
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {}
};

TEST_F(ColumnFamilyDriverTest, IsNotIdleBeforeItHasLookedAtFlushesThatItHasNotHeardOf) {
  options_.listeners = {std::make_shared<DeafListener>()};
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_TRUE(Drive({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  ASSERT_NO_FATAL_FAILURE(FillLevel0());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  EXPECT_TRUE(metadata.levels[0].files.empty()) << metadata.levels[0].files.size();
  ExpectAsInModel();
}

TEST_F(ColumnFamilyDriverTest, CompactsBeforeAFlushWhatItHasNotHeardOf) {
  options_.soft_pending_compaction_bytes_limit = 1;
  options_.hard_pending_compaction_bytes_limit = 2;
  options_.max_bytes_for_level_base = 1;
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  Change(500);
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(Drive({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  // The program fills level 1, of which nobody is told.
  rocksdb::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_TRUE(db_->CompactFiles({}, {metadata.levels[0].files.front().name}, 1).ok());
  const uint64_t before = driver_->Stats().compactions;
  Change(100);
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_TRUE(driver_->WaitUntilIdle().ok());
  EXPECT_GT(driver_->Stats().compactions, before);
  ExpectAsInModel();
}

TEST_F(ColumnFamilyDriverTest, LetsAHeldFlushGoWhenItEnds) {
  const auto gated = std::make_shared<GatedFileSystem>(rocksdb::FileSystem::Default());
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(gated);
  options_.env = env.get();
  options_.soft_pending_compaction_bytes_limit = 1;
  options_.hard_pending_compaction_bytes_limit = 2;
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  ASSERT_NO_FATAL_FAILURE(FillLevel0());
  ASSERT_NO_FATAL_FAILURE(HoldAFlush());
  std::thread end([this] { driver_.reset(); });
  // It waits for the compaction, and not for the flush.
  ASSERT_TRUE(db_->Flush({}).ok());
  gated->Open();
  end.join();
  ExpectAsInModel();
  db_.reset();
}

// A clock that a test sets, and that jumps once when it has been looked at.
class JumpingClock final : public Clock {
 public:
  int64_t NowNs() const override {
    const int64_t now_ns = clock_.NowNs();
    if (const int64_t jump_ns = jump_ns_.exchange(0); jump_ns > 0) clock_.Advance(jump_ns);
    return now_ns;
  }
  uint64_t NowWallS() const override { return clock_.NowWallS(); }
  void WaitUntil(CondVar& condition, Mutex& mu, int64_t deadline_ns) override ISOZONE_REQUIRES(mu) {
    clock_.WaitUntil(condition, mu, deadline_ns);
  }
  ManualClock& manual() { return clock_; }
  void JumpAfterNextLook(int64_t ns) { jump_ns_ = ns; }

 private:
  mutable ManualClock clock_;
  mutable std::atomic<int64_t> jump_ns_ = 0;
};

TEST_F(ColumnFamilyDriverTest, LooksAgainForRoomThatItLeftToAFlushWhichCountsNoMore) {
  std::filesystem::create_directory(directory_);
  const std::shared_ptr<ZonedFileSystem> fs = MakeEmulatedFileSystem(directory_, "zones=64&zone_size=4M");
  ASSERT_NE(fs, nullptr);
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(fs);
  options_.env = env.get();
  options_.write_buffer_size = 1 << 30;  // more than the device has, so nothing is compacted beside a flush
  const rocksdb::Status opened = OpenInto(options_, "/db", &db_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  ASSERT_NO_FATAL_FAILURE(FillLevel0());
  ASSERT_TRUE(db_->SetOptions({{"disable_auto_compactions", "true"}}).ok());
  JumpingClock clock;
  ASSERT_TRUE(Drive({.clock = &clock}).ok());
  clock.manual().AwaitWaiter(0);
  ColumnFamilyDriver::NoteFlush({.db = db_->GetRootDB(), .number = 1'000'000},
                                FlushStep::kBegun);  // its end is not told
  ASSERT_TRUE(db_->SetOptions({{"disable_auto_compactions", "false"}}).ok());
  // The flush counts while the driver chooses, and no longer when it has chosen.
  clock.JumpAfterNextLook(HeldFlushes::kFlushStepNs + 1);
  ColumnFamilyDriver::Wake(db_->GetRootDB());
  const int64_t give_up_ns = MonotonicNs() + 10 * kSecondNs;
  while (driver_->Stats().compactions == 0 && MonotonicNs() < give_up_ns) clock.manual().Advance(kLookForRoomNs);
  EXPECT_GT(driver_->Stats().compactions, 0U);
  ExpectAsInModel();
  driver_.reset();
  db_.reset();
}

TEST(ColumnFamilyDriverStats, ZonesOfTheTZoneAreThoseOfOneColumnFamily) {
  ColumnFamilyDriverStats all{.compactions = 4, .t_zones_most = 3, .t_zones_sum = 8};
  all += {.compactions = 4, .t_zones_most = 5, .t_zones_sum = 16};
  EXPECT_EQ(all.t_zones_most, 5U);
  EXPECT_EQ(all.t_zones_sum / all.compactions, 3U);
}

TEST_F(ColumnFamilyDriverTest, SaysWhatToChangeWhereItCannotWork) {
  ASSERT_NO_FATAL_FAILURE(OpenDb());
  EXPECT_NE(Refusal({.picker = "best"}).find("leveled"), std::string::npos);
  EXPECT_NE(Refusal({.threads = 0}).find("1 to 64"), std::string::npos);
  ASSERT_TRUE(Drive({}).ok());
  std::unique_ptr<ColumnFamilyDriver> second;
  EXPECT_TRUE(ColumnFamilyDriver::Open(db_.get(), db_->DefaultColumnFamily(), {}, &second).IsInvalidArgument());
  driver_.reset();
  ASSERT_TRUE(Drive({}).ok());
  driver_.reset();

  const auto reopened = [this](const std::function<void(rocksdb::Options&)>& change) {
    const rocksdb::Options before = options_;
    change(options_);
    db_.reset();
    OpenDb();
    options_ = before;
    return Refusal({});
  };
  EXPECT_NE(reopened([](auto& o) { o.listeners.clear(); }).find("listeners={isozone}"), std::string::npos);
  EXPECT_NE(reopened([](auto& o) { o.sst_partitioner_factory.reset(); }).find("sst_partitioner_factory=isozone"),
            std::string::npos);
  EXPECT_NE(reopened([](auto& o) { o.compaction_style = rocksdb::kCompactionStyleLevel; }).find("kCompactionStyleNone"),
            std::string::npos);
}

}  // namespace
}  // namespace isozone
