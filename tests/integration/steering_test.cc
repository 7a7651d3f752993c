// Compaction that Isozone steers (isozone::CompactionDriver), on an Isozone device.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>

#include "base/random.h"
#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

class SteeringTest : public ScratchDevice {
 protected:
  void SetUp() override {
    ScratchDevice::SetUp();
    env_ = OpenEnv();
    rocksdb::ConfigOptions config;
    rocksdb::Options base;
    base.env = env_.get();
    base.create_if_missing = true;
    ISOZONE_ASSERT_OK(rocksdb::GetOptionsFromString(config, base,
                                                    "listeners={isozone};sst_partitioner_factory=isozone;"
                                                    "compaction_style=kCompactionStyleNone;num_levels=5;"
                                                    "write_buffer_size=131072;target_file_size_base=65536;"
                                                    "max_bytes_for_level_base=262144;compression=kNoCompression;"
                                                    "max_bytes_for_level_multiplier=4",
                                                    &options_));
  }
  void TearDown() override { Close(); }

  void OpenIt(const std::vector<std::string>& names = {"default"}) {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, options_);
    options_.create_missing_column_families = true;
    ISOZONE_ASSERT_OK(OpenInto(&db_, ISOZONE_OPEN(Open, options_, "/db", families, &families_)));
  }
  void Drive(const std::string& picker, bool t_zone = true) {
    const CompactionDriverOptions options = {.picker = picker, .threads = 1, .t_zone = t_zone};
    ISOZONE_ASSERT_OK(CompactionDriver::Open(db_.get(), families_, options, &driver_));
  }
  void Close() {
    driver_.reset();
    for (rocksdb::ColumnFamilyHandle* family : families_) ISOZONE_EXPECT_OK(db_->DestroyColumnFamilyHandle(family));
    families_.clear();
    db_.reset();
  }
  void Put(rocksdb::ColumnFamilyHandle* family, int count) {
    auto& model = model_[family->GetName()];
    for (int i = 0; i < count; ++i) {
      const std::string key = Key(random_.Below(20'000));
      model[key] = random_.Next();
      ISOZONE_ASSERT_OK(db_->Put({}, family, key, Bytes(200, model[key])));
    }
  }
  // A put does not wait here where RocksDB has stopped writes: RocksDB 11 deadlocks if it recovers from lack of space in
  // that moment (docs/steering.md).
  void PutUntilFull() {
    rocksdb::WriteOptions at_once;
    at_once.no_slowdown = true;
    for (;;) {
      const std::string key = Key(random_.Below(20'000));
      const uint64_t seed = random_.Next();
      const rocksdb::Status status = db_->Put(at_once, families_[0], key, Bytes(200, seed));
      if (!status.IsIncomplete()) model_["default"][key] = seed;
      if (!status.ok() && !status.IsIncomplete()) {
        unsure_key_ = key;
        return;
      }
      if (status.ok()) continue;
      if (HasBackgroundError()) return;
      env_->SleepForMicroseconds(1000);
    }
  }
  bool HasBackgroundError() const {
    uint64_t errors = 0;
    return db_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors) && errors > 0;
  }
  void ExpectAsInModel() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      const auto& model = model_[family->GetName()];
      const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, family));
      it->SeekToFirst();
      for (const auto& [key, seed] : model) {
        ASSERT_TRUE(it->Valid()) << key;
        ASSERT_EQ(it->key().ToString(), key);
        ASSERT_TRUE(it->value().ToString() == Bytes(200, seed)) << key;
        it->Next();
      }
      EXPECT_FALSE(it->Valid());
    }
  }

  Random random_{20261124};
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<CompactionDriver> driver_;
  std::map<std::string, std::map<std::string, uint64_t>> model_;
  std::optional<std::string> unsure_key_;  // it has the value of the model, or the one before
};

TEST_F(SteeringTest, EveryPickerCompactsEveryColumnFamilyOverRestarts) {
  for (const std::string picker : {"leveled", "greedy", "gear", "ll", "isozone"}) {
    SCOPED_TRACE(picker);
    ASSERT_NO_FATAL_FAILURE(OpenIt({"default", "second"}));
    ASSERT_NO_FATAL_FAILURE(Drive(picker));
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      ASSERT_NO_FATAL_FAILURE(Put(family, 10'000));
      ISOZONE_ASSERT_OK(db_->Flush({}, family));
    }
    ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
    EXPECT_NE(driver_->Stats().find("\"failed\":0"), std::string::npos) << driver_->Stats();
    ASSERT_NO_FATAL_FAILURE(ExpectAsInModel());
    Close();
    ISOZONE_EXPECT_OK(env_->FileExists("/db/ISOZONE-COMPACTION-0"));
    ISOZONE_EXPECT_OK(env_->FileExists("/db/ISOZONE-COMPACTION-1"));
  }
  ASSERT_NO_FATAL_FAILURE(OpenIt({"default", "second"}));
  ExpectAsInModel();
  ISOZONE_EXPECT_OK(db_->VerifyChecksum());
}

TEST_F(SteeringTest, ShortLivedTablesHaveZonesOfTheirOwn) {
  for (const bool t_zone : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(OpenIt());
    ASSERT_NO_FATAL_FAILURE(Drive("ll", t_zone));
    ASSERT_NO_FATAL_FAILURE(Put(families_[0], 20'000));
    ISOZONE_ASSERT_OK(db_->Flush({}));
    ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
    const auto stats = nlohmann::json::parse(driver_->Stats());
    EXPECT_GT(stats.at("short_lived_bytes"), 0) << stats;
    EXPECT_LT(stats.at("short_lived_bytes"), stats.at("bytes_written")) << stats;
    EXPECT_EQ(stats.at("t_zones_most") > 0, t_zone) << stats;
    EXPECT_EQ(stats.at("t_zones_mean") > 0, t_zone) << stats;
    ASSERT_NO_FATAL_FAILURE(ExpectAsInModel());
    Close();
  }
  std::string json;
  ISOZONE_ASSERT_OK(GetStats(*env_->GetFileSystem(), &json));
  EXPECT_EQ(nlohmann::json::parse(json).at("mixed_cohorts"), 0);
}

TEST_F(SteeringTest, DamagedPointersAreLeftOut) {
  ASSERT_NO_FATAL_FAILURE(OpenIt());
  ISOZONE_ASSERT_OK(rocksdb::WriteStringToFile(env_.get(), "what is this?", "/db/ISOZONE-COMPACTION-0"));
  ASSERT_NO_FATAL_FAILURE(Drive("ll"));
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 10'000));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
  ExpectAsInModel();
}

TEST_F(SteeringTest, ADeviceThatWasFullGoesOn) {
  ASSERT_NO_FATAL_FAILURE(OpenIt());
  ASSERT_NO_FATAL_FAILURE(Drive("isozone"));
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 5'000));
  rocksdb::Status full;
  const std::string large(4 << 20, 'x');
  int files = 0;
  while (full.ok()) full = rocksdb::WriteStringToFile(env_.get(), large, "/filler" + std::to_string(files++));
  PutUntilFull();
  for (int i = 0; i + 1 < files; ++i) ISOZONE_EXPECT_OK(env_->DeleteFile("/filler" + std::to_string(i)));
  (void)env_->DeleteFile("/filler" + std::to_string(files - 1));  // where there was no space for it
  rocksdb::Status resumed = db_->Resume();
  // RocksDB may be about to resume by itself.
  for (; resumed.IsBusy(); resumed = db_->Resume()) env_->SleepForMicroseconds(1000);
  ISOZONE_ASSERT_OK(resumed);
  if (unsure_key_) {
    ISOZONE_ASSERT_OK(db_->Put({}, *unsure_key_, Bytes(200, model_["default"][*unsure_key_])));
  }
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 5'000));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
  ExpectAsInModel();
}

}  // namespace
}  // namespace isozone
