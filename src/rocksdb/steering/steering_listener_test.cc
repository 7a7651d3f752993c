#include "rocksdb/steering/steering_listener.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env_encryption.h>

#include "base/mutex.h"
#include "rocksdb/adapter/database_test_util.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/steering/steering_partitioner.h"

namespace isozone {
namespace {

constexpr int8_t kNoLevel = DataClass::kNoLevel;

// Counts the threads that compact.
class ThreadCounter : public rocksdb::EventListener {
 public:
  void OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo&) override {
    const MutexLock lock(mu_);
    threads_.insert(std::this_thread::get_id());
  }
  size_t count() {
    const MutexLock lock(mu_);
    return threads_.size();
  }

 private:
  Mutex mu_;
  std::set<std::thread::id> threads_ ISOZONE_GUARDED_BY(mu_);
};

// A database on an emulated SSD, with no more of Isozone than what is in `options`.
class LevelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "isozone_steering_listener." + std::to_string(getpid());
    std::filesystem::create_directory(directory_);
    fs_ = MakeEmulatedFileSystem(directory_, "zones=64&zone_size=4M");
    ASSERT_NE(fs_, nullptr);
    env_ = rocksdb::NewCompositeEnv(fs_);
    static const bool registered = (RegisterSteering(*rocksdb::ObjectLibrary::Default()), true);
    ASSERT_TRUE(registered);
  }
  void TearDown() override {
    db_.reset();
    env_.reset();
    fs_.reset();
    std::filesystem::remove_all(directory_);
  }

  // `added` as an options file has it.
  void OpenIt(const std::string& added) {
    rocksdb::Options base;
    base.env = env_.get();
    base.create_if_missing = true;
    base.disable_auto_compactions = true;
    base.level_compaction_dynamic_level_bytes = false;
    base.target_file_size_base = 128 << 10;
    base.compression = rocksdb::kNoCompression;
    rocksdb::ConfigOptions config;
    config.ignore_unsupported_options = false;
    rocksdb::Options options;
    const rocksdb::Status parsed = rocksdb::GetOptionsFromString(config, base, added, &options);
    ASSERT_TRUE(parsed.ok()) << parsed.ToString();
    options.listeners.push_back(threads_);
    const rocksdb::Status opened = OpenInto(options, "/db", &db_);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
  }

  // A table of keys that begin with `prefix`, in level 0.
  void WriteTable(char prefix) {
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(db_->Put({}, prefix + std::to_string(i), std::string(100, prefix)).ok());
    }
    ASSERT_TRUE(db_->Flush({}).ok());
  }

  std::vector<rocksdb::LiveFileMetaData> LiveTables() {
    std::vector<rocksdb::LiveFileMetaData> tables;
    db_->GetLiveFilesMetaData(&tables);
    return tables;
  }

  // Tables of their own key range in each level to `deepest`.
  void FillLevels(int deepest) {
    for (int level = deepest; level >= 0; --level) {
      WriteTable(static_cast<char>('a' + level));
      if (level == 0) continue;
      std::vector<std::string> inputs;
      for (const auto& table : LiveTables()) {
        if (table.level == 0) inputs.push_back(table.name);
      }
      const rocksdb::Status status = db_->CompactFiles({}, inputs, level);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(RunningJob::OfThread().level, kNoLevel);  // CompactFiles works in this thread
    }
  }

  // What the file system takes the tables of each level for.
  std::multimap<int, int> LevelsByLevel() {
    std::map<std::string, int8_t> levels;
    const Status visited = fs_->system().fs().state().VisitFiles([&](const FileDetails& file) {
      for (const std::string& path : file.paths) levels[path] = file.attributes.level;
    });
    EXPECT_TRUE(visited.ok()) << visited.ToString();
    std::multimap<int, int> result;
    for (const auto& table : LiveTables()) result.emplace(table.level, levels.at("/db" + table.name));
    return result;
  }

  void ExpectExactLevels(int deepest) {
    const auto levels = LevelsByLevel();
    for (int level = 0; level <= deepest; ++level) EXPECT_GT(levels.count(level), 0U) << "no table in " << level;
    for (const auto& [level, known] : levels) EXPECT_EQ(known, level);
  }

  std::string directory_;
  std::shared_ptr<ZonedFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<ThreadCounter> threads_ = std::make_shared<ThreadCounter>();
  std::unique_ptr<rocksdb::DB> db_;
};

TEST(SteeringPartitionerTest, IsNotMadeWhereTheLevelIsNotKnown) {
  rocksdb::SstPartitioner::Context context{};
  context.output_level = -1;
  EXPECT_EQ(SteeringPartitionerFactory().CreatePartitioner(context), nullptr);
}

TEST_F(LevelsTest, TheListenerKnowsEachLevel) {
  OpenIt("listeners={isozone}");
  FillLevels(5);
  ExpectExactLevels(5);
}

// RocksDB's wrapper of files keeps hints and priorities that are set to itself.
class EncryptedLevelsTest : public LevelsTest {
 protected:
  void SetUp() override {
    LevelsTest::SetUp();
    std::shared_ptr<rocksdb::EncryptionProvider> provider;
    ASSERT_TRUE(rocksdb::EncryptionProvider::CreateFromString({}, "CTR://test", &provider).ok());
    plain_ = std::move(env_);
    env_.reset(rocksdb::NewEncryptedEnv(plain_.get(), provider));
  }
  void TearDown() override {
    db_.reset();
    env_ = std::move(plain_);
    LevelsTest::TearDown();
  }

 private:
  std::unique_ptr<rocksdb::Env> plain_;
};

TEST_F(EncryptedLevelsTest, TheListenerKnowsEachLevel) {
  OpenIt("listeners={isozone}");
  FillLevels(5);
  ExpectExactLevels(5);
}

TEST_F(EncryptedLevelsTest, ThePartitionerKnowsEachLevel) {
  OpenIt("sst_partitioner_factory=isozone");
  FillLevels(5);
  ExpectExactLevels(5);
}

// The hint with which files are opened from RocksDB 10.1 on tells their lifetime; but not the priority, so nobody knows
// that a compaction writes them.
TEST_F(EncryptedLevelsTest, HintsTellNoLevel) {
  OpenIt("");
  FillLevels(5);
  for (const auto& [level, known] : LevelsByLevel()) {
    EXPECT_TRUE(level == 0 || known == kNoLevel) << level << ", " << known;  // those in level 0 are known as flushed
  }
}

TEST_F(LevelsTest, ThePartitionerKnowsEachLevel) {
  OpenIt("sst_partitioner_factory=isozone");
  FillLevels(5);
  ExpectExactLevels(5);
}

TEST_F(LevelsTest, BothTogetherKnowEachLevel) {
  OpenIt("listeners={isozone};sst_partitioner_factory=isozone");
  FillLevels(5);
  ExpectExactLevels(5);
}

TEST_F(LevelsTest, HintsTellTheFirstThreeLevels) {
  OpenIt("");
  FillLevels(5);
  for (const auto& [level, known] : LevelsByLevel()) EXPECT_EQ(known, std::min(level, 3)) << level;
}

// Also where several threads write, in the background. The base level is the last one here, of which the hint says 1.
TEST_F(LevelsTest, SubcompactionsKnowTheirLevel) {
  for (const char* source : {"listeners={isozone}", "sst_partitioner_factory=isozone"}) {
    SCOPED_TRACE(source);
    threads_ = std::make_shared<ThreadCounter>();
    OpenIt(source + std::string(";max_subcompactions=4;num_levels=7;level_compaction_dynamic_level_bytes=true"));
    for (char prefix = 'a'; prefix < 'i'; ++prefix) WriteTable(prefix);
    rocksdb::CompactRangeOptions force;
    force.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    const rocksdb::Status status = db_->CompactRange(force, nullptr, nullptr);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const auto levels = LevelsByLevel();
    EXPECT_GT(levels.count(6), 4U);
    EXPECT_GT(threads_->count(), 1U);
    for (const auto& [level, known] : levels) EXPECT_EQ(known, level);
    db_.reset();
    rocksdb::Options options;
    options.env = env_.get();
    ASSERT_TRUE(rocksdb::DestroyDB("/db", options).ok());
  }
}

// Universal compaction gives no hints.
TEST_F(LevelsTest, UniversalCompactionHasLevelsToo) {
  OpenIt("listeners={isozone};compaction_style=kCompactionStyleUniversal;num_levels=6");
  for (char prefix = 'a'; prefix < 'e'; ++prefix) WriteTable(prefix);
  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  WriteTable('z');
  const auto levels = LevelsByLevel();
  EXPECT_GT(levels.count(5), 0U);
  EXPECT_EQ(levels.count(0), 1U);
  for (const auto& [level, known] : levels) EXPECT_EQ(known, level);
}

}  // namespace
}  // namespace isozone
