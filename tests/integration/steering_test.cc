// Compaction that Isozone steers (isozone::CompactionDriver), on an Isozone device.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "integration/steered_database.h"

namespace isozone {
namespace {

using SteeringTest = SteeredDatabase;

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

TEST_F(SteeringTest, AListenerSteersTheDefaultColumnFamilyByItself) {
  ISOZONE_ASSERT_OK(rocksdb::GetDBOptionsFromString(rocksdb::ConfigOptions(), rocksdb::DBOptions(options_),
                                                    "listeners={id=isozone;compaction=ll;threads=2}", &options_));
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(OpenIt({"default", "second"}));
    EXPECT_TRUE(CompactionDriver::Open(db_.get(), {families_[0]}, {}, &driver_).IsInvalidArgument());
    ISOZONE_ASSERT_OK(CompactionDriver::Open(db_.get(), {families_[1]}, {}, &driver_));
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      ASSERT_NO_FATAL_FAILURE(Put(family, 5'000));
      ISOZONE_ASSERT_OK(db_->Flush({}, family));
    }
    std::unique_ptr<CompactionDriver> of_listener;
    ISOZONE_ASSERT_OK(CompactionDriver::Find(db_.get(), &of_listener));
    ISOZONE_ASSERT_OK(of_listener->WaitUntilIdle());
    EXPECT_EQ(of_listener->Stats().find("\"compactions\":0"), std::string::npos) << of_listener->Stats();
    EXPECT_NE(of_listener->Stats().find("\"failed\":0"), std::string::npos) << of_listener->Stats();
    of_listener.reset();
    ASSERT_NO_FATAL_FAILURE(ExpectAsInModel());
    Close();
  }
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
  (void)driver_->WaitUntilIdle();  // what has begun on the full device must not fail later
  for (int i = 0; i + 1 < files; ++i) ISOZONE_EXPECT_OK(env_->DeleteFile("/filler" + std::to_string(i)));
  (void)env_->DeleteFile("/filler" + std::to_string(files - 1));  // where there was no space for it
  rocksdb::Status resumed = db_->Resume();
  // RocksDB may be about to resume by itself.
  for (; resumed.IsBusy(); resumed = db_->Resume()) env_->SleepForMicroseconds(1000);
  ISOZONE_ASSERT_OK(resumed);
  ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());  // a put that waits for compactions could deadlock (PutUntilFull)
  if (unsure_key_) {
    ISOZONE_ASSERT_OK(db_->Put({}, *unsure_key_, Bytes(200, model_["default"][*unsure_key_])));
  }
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 5'000));
  ISOZONE_ASSERT_OK(db_->Flush({}));
  ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
  ExpectAsInModel();
}

// Live data fills seven tenths of the device. Levels, and what waits to be compacted, must not need the rest.
class NearlyFullDeviceTest : public SteeredDatabase, public testing::WithParamInterface<std::string> {
 protected:
  static constexpr int kKeys = 48'000;
  static constexpr size_t kValueBytes = 800;
  NearlyFullDeviceTest()
      : SteeredDatabase("zones=256&zone_size=256KiB&zone_capacity=256KiB&max_open=64&max_active=64") {}
  rocksdb::Status PutAll(const std::vector<int>& order, uint64_t seed) {
    rocksdb::Status status;
    for (size_t i = 0; i < order.size() && status.ok(); ++i) {
      status = db_->Put({}, Key(static_cast<uint64_t>(order[i])),
                        Bytes(kValueBytes, seed + static_cast<uint64_t>(order[i])));
    }
    return status;
  }
};

TEST_P(NearlyFullDeviceTest, IsOverwrittenWithoutRunningOutOfSpace) {
  options_.num_levels = 7;
  options_.write_buffer_size = 256 << 10;
  options_.target_file_size_base = 256 << 10;
  options_.max_bytes_for_level_base = 2 << 20;
  options_.info_log_level = rocksdb::ERROR_LEVEL;  // each compaction is told in some kilobytes
  options_.max_bytes_for_level_multiplier = 10;
  ASSERT_NO_FATAL_FAILURE(OpenIt());
  ASSERT_NO_FATAL_FAILURE(Drive(GetParam()));
  std::vector<int> order(kKeys);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t round = 1; round <= 3; ++round) {
    std::mt19937_64 random(round);
    std::shuffle(order.begin(), order.end(), random);
    ISOZONE_ASSERT_OK(PutAll(order, round * kKeys));
  }
  ISOZONE_ASSERT_OK(db_->Flush({}));
  for (int key = 0; key < kKeys; key += 7) {
    std::string value;
    ISOZONE_ASSERT_OK(db_->Get({}, Key(static_cast<uint64_t>(key)), &value));
    ASSERT_EQ(value, Bytes(kValueBytes, 3 * kKeys + static_cast<uint64_t>(key))) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Pickers, NearlyFullDeviceTest, testing::Values("isozone", "ll"));

}  // namespace
}  // namespace isozone
