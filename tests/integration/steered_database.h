// The base of tests of steered compaction: a database on an Isozone device, opened for it, with a model of its content.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>

#include "base/random.h"
#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {

class SteeredDatabase : public ScratchDevice {
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
  explicit SteeredDatabase(const std::string& geometry = kSmallDevice) : ScratchDevice(geometry) {}

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
  // Flushes often, so that it is a table for which there is no space, and not a log: RocksDB 7.8.3 asserts where it
  // meets a log again that it could not write. A put does not wait here where RocksDB has stopped writes: RocksDB 11
  // deadlocks if it recovers from lack of space in that moment (docs/steering.md). Writes may also stop for good
  // without an error of RocksDB: level 0 has as many tables as it may have, and each compaction of it fails.
  void PutUntilFull() {
    rocksdb::WriteOptions at_once;
    at_once.no_slowdown = true;
    rocksdb::FlushOptions now;
    now.allow_write_stall = true;
    for (int puts = 1;; ++puts) {
      if (puts % 50 == 0 && !db_->Flush(now, families_[0]).ok()) return;
      const std::string key = Key(random_.Below(20'000));
      const uint64_t seed = random_.Next();
      const rocksdb::Status status = db_->Put(at_once, families_[0], key, Bytes(200, seed));
      if (!status.IsIncomplete()) model_["default"][key] = seed;
      if (!status.ok() && !status.IsIncomplete()) {
        unsure_key_ = key;
        return;
      }
      if (status.ok()) continue;
      if (HasBackgroundError() || HasFailedCompactions()) return;
      env_->SleepForMicroseconds(1000);
    }
  }
  bool HasBackgroundError() const {
    uint64_t errors = 0;
    return db_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors) && errors > 0;
  }
  bool HasFailedCompactions() const { return nlohmann::json::parse(driver_->Stats()).at("failed") > 0; }
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

}  // namespace isozone
