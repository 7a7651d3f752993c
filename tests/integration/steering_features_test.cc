// What RocksDB offers, on a database whose compaction Isozone steers: each feature works, or is refused in one line.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include "integration/steered_database.h"

namespace isozone {
namespace {

class SteeringFeaturesTest : public SteeredDatabase, public testing::WithParamInterface<std::string> {
 protected:
  void OpenAndDrive() {
    ASSERT_NO_FATAL_FAILURE(OpenIt());
    ASSERT_NO_FATAL_FAILURE(Drive(GetParam()));
  }
  void PutAndCompact(int count) {
    ASSERT_NO_FATAL_FAILURE(Put(families_[0], count));
    ISOZONE_ASSERT_OK(db_->Flush({}));
    ISOZONE_ASSERT_OK(driver_->WaitUntilIdle());
  }
  rocksdb::ColumnFamilyMetaData Metadata() {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    return metadata;
  }
};

TEST_P(SteeringFeaturesTest, SnapshotsSeeWhatTheySaw) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(8'000));
  const auto before = model_["default"];
  rocksdb::ReadOptions then;
  then.snapshot = db_->GetSnapshot();
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(12'000));
  for (const auto& [key, seed] : before) {
    std::string value;
    ISOZONE_ASSERT_OK(db_->Get(then, key, &value));
    ASSERT_TRUE(value == Bytes(200, seed)) << key;
  }
  db_->ReleaseSnapshot(then.snapshot);
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(4'000));
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, RangeDeletionsReachEveryLevel) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(PutAndCompact(5'000));
    const std::string begin = Key(random_.Below(15'000));
    const std::string end = Key(20'000);
    ISOZONE_ASSERT_OK(db_->DeleteRange({}, families_[0], begin, end));
    auto& model = model_["default"];
    model.erase(model.lower_bound(begin), model.lower_bound(end));
  }
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(1));
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, BlobFilesAreKeptAndCollected) {
  options_.enable_blob_files = true;
  options_.min_blob_size = 100;
  options_.enable_blob_garbage_collection = true;
  options_.blob_garbage_collection_age_cutoff = 1.0;
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(10'000));
  EXPECT_GT(Metadata().blob_file_count, 0U);
  ExpectAsInModel();
}

// Removes every key that ends in 7.
class SevenFilter : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "seven"; }
  bool Filter(int, const rocksdb::Slice& key, const rocksdb::Slice&, std::string*, bool*) const override {
    return key.ToString().back() == '7';
  }
};

TEST_P(SteeringFeaturesTest, CompactionFiltersFilter) {
  const SevenFilter filter;
  options_.compaction_filter = &filter;
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(10'000));
  // Level 0 is not filtered before it is compacted.
  size_t left = 0;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
  for (it->SeekToFirst(); it->Valid(); it->Next()) left += it->key().ToString().back() == '7' ? 1 : 0;
  const auto sevens = static_cast<size_t>(
      std::ranges::count_if(model_["default"], [](const auto& entry) { return entry.first.back() == '7'; }));
  EXPECT_LT(left, sevens / 2);
}

TEST_P(SteeringFeaturesTest, IngestedTablesAreTakenWhereverTheyLand) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(5'000));
  for (const uint64_t first : {uint64_t{0}, uint64_t{30'000}, uint64_t{5'000}}) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    ISOZONE_ASSERT_OK(writer.Open("/ingested.sst"));
    for (uint64_t i = first; i < first + 2'000; ++i) {
      model_["default"][Key(i)] = i;
      ISOZONE_ASSERT_OK(writer.Put(Key(i), Bytes(200, i)));
    }
    ISOZONE_ASSERT_OK(writer.Finish());
    ISOZONE_ASSERT_OK(db_->IngestExternalFile({"/ingested.sst"}, {}));
    ASSERT_NO_FATAL_FAILURE(PutAndCompact(2'000));
  }
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, PausedBackgroundWorkGoesOnAfterwards) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 5'000));
  ISOZONE_ASSERT_OK(db_->PauseBackgroundWork());
  ISOZONE_ASSERT_OK(db_->ContinueBackgroundWork());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(5'000));
  EXPECT_LT(Metadata().levels[0].files.size(), 4U);
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, CompactRangeLeavesThingsAsTheyAre) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(8'000));
  const rocksdb::Status status = db_->CompactRange({}, nullptr, nullptr);
  EXPECT_TRUE(status.ok() || status.IsNotSupported()) << status.ToString();
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(2'000));
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, CompactFilesOfTheProgramGoesBesideIt) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(Put(families_[0], 3'000));
    std::vector<std::string> names;
    const auto metadata = Metadata();
    for (const auto& file : metadata.levels[0].files) names.push_back(file.name);
    if (names.empty()) continue;
    // The driver may have taken one of them already.
    (void)db_->CompactFiles({}, names, 1);
  }
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(1));
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, ADroppedColumnFamilyEndsItsDriver) {
  ASSERT_NO_FATAL_FAILURE(OpenIt({"default", "second"}));
  ASSERT_NO_FATAL_FAILURE(Drive(GetParam()));
  ASSERT_NO_FATAL_FAILURE(Put(families_[1], 3'000));
  ISOZONE_ASSERT_OK(db_->DropColumnFamily(families_[1]));
  ASSERT_NO_FATAL_FAILURE(Put(families_[0], 8'000));
  ISOZONE_ASSERT_OK(db_->Flush({}, families_[0]));
  driver_.reset();
  model_.erase("second");
  ISOZONE_ASSERT_OK(db_->DestroyColumnFamilyHandle(families_[1]));
  families_.pop_back();
  ExpectAsInModel();
}

TEST_P(SteeringFeaturesTest, AReadOnlyDatabaseIsRefused) {
  ASSERT_NO_FATAL_FAILURE(OpenAndDrive());
  ASSERT_NO_FATAL_FAILURE(PutAndCompact(2'000));
  Close();
  ISOZONE_ASSERT_OK(OpenInto(&db_, ISOZONE_OPEN(OpenForReadOnly, options_, "/db")));
  const rocksdb::Status status =
      CompactionDriver::Open(db_.get(), {db_->DefaultColumnFamily()}, {.picker = GetParam()}, &driver_);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_THAT(status.ToString(), testing::HasSubstr("for reading only"));
}

INSTANTIATE_TEST_SUITE_P(Pickers, SteeringFeaturesTest, testing::Values("leveled", "greedy", "gear", "ll", "isozone"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace isozone
