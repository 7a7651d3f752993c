// The options files of isozone advise as RocksDB takes them: each line is known and has the value that was advised, and
// a database on the device opens with it.

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <rocksdb/cache.h>
#if __has_include(<rocksdb/advanced_cache.h>)
#include <rocksdb/advanced_cache.h>
#endif
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_partitioner.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/options_util.h>

#include "insight/advice/options_advice.h"
#include "integration/scratch.h"

namespace isozone {
namespace {

struct LoadedOptions {
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  const rocksdb::ColumnFamilyOptions& family() const { return families.at(0).options; }
};

class AdvisedOptionsTest : public ScratchDevice {
 protected:
  // What has few active zones, little memory, another workload and so on takes other lines.
  static std::vector<AdviceFacts> Cases() {
    std::vector<AdviceFacts> cases;
    for (const Workload workload : {Workload::kWrite, Workload::kRead, Workload::kMixed}) {
      for (const uint32_t max_active : {0U, 14U, 384U}) {
        for (const uint64_t memory : {64 * kMiB, 8 * kGiB}) {
          AdviceFacts facts;
          facts.device = "emu:ssd.img";
          facts.zones = 4096;
          facts.zone_capacity = max_active == 14 ? 1077 * kMiB : 4 * kMiB;
          facts.max_active = max_active;
          facts.cores = 8;
          facts.memory = memory;
          facts.workload = workload;
          cases.push_back(facts);
        }
      }
    }
    return cases;
  }

  LoadedOptions Load(const OptionsAdvice& advice) const {
    const std::string path = scratch_.path() + "/advised.ini";
    std::ofstream(path) << OptionsFileText(advice);
    LoadedOptions loaded;
    rocksdb::ConfigOptions config;
    config.ignore_unknown_options = false;
    config.ignore_unsupported_options = false;
    ISOZONE_EXPECT_OK(rocksdb::LoadOptionsFromFile(config, path, &loaded.database, &loaded.families));
    return loaded;
  }
};

std::string ValueOf(const OptionsAdvice& advice, std::string_view key) {
  for (const OptionSetting& setting : advice.settings) {
    if (setting.key == key) return setting.value;
  }
  return "";
}

TEST_F(AdvisedOptionsTest, RocksDbReadsEveryLine) {
  for (const AdviceFacts& facts : Cases()) {
    const OptionsAdvice advice = AdviseOptions(facts).value();
    SCOPED_TRACE(OptionsFileText(advice));
    const LoadedOptions loaded = Load(advice);
    ASSERT_EQ(loaded.families.size(), 1U);
    const rocksdb::ColumnFamilyOptions& family = loaded.family();
    EXPECT_EQ(std::to_string(loaded.database.max_background_jobs), ValueOf(advice, "max_background_jobs"));
    EXPECT_EQ(loaded.database.listeners.size(), 1U);
    EXPECT_EQ(std::to_string(family.write_buffer_size), ValueOf(advice, "write_buffer_size"));
    EXPECT_EQ(std::to_string(family.max_write_buffer_number), ValueOf(advice, "max_write_buffer_number"));
    EXPECT_EQ(std::to_string(family.target_file_size_base), ValueOf(advice, "target_file_size_base"));
    EXPECT_EQ(std::to_string(family.max_bytes_for_level_base), ValueOf(advice, "max_bytes_for_level_base"));
    const bool steered = ValueOf(advice, "listeners") != "{isozone}";
    EXPECT_EQ(family.compaction_style == rocksdb::kCompactionStyleNone, steered);
    EXPECT_EQ(family.sst_partitioner_factory != nullptr, steered);
    const auto* table = family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    ASSERT_NE(table, nullptr);
    EXPECT_TRUE(table->cache_index_and_filter_blocks);
    EXPECT_NE(table->filter_policy, nullptr);
    ASSERT_NE(table->block_cache, nullptr);
    EXPECT_EQ(std::to_string(table->block_cache->GetCapacity()), ValueOf(advice, "block_cache"));
  }
}

TEST_F(AdvisedOptionsTest, ADatabaseOpensAndKeepsItsKeys) {
  for (const Workload workload : {Workload::kWrite, Workload::kRead, Workload::kMixed}) {
    AdviceFacts facts;
    facts.device = "the scratch device";
    facts.zones = 128;
    facts.zone_capacity = 6 * kMiB;
    facts.max_active = 32;
    facts.memory = 256 * kMiB;
    facts.workload = workload;
    SCOPED_TRACE(WorkloadName(workload));
    LoadedOptions loaded = Load(AdviseOptions(facts).value());
    const auto env = OpenEnv();
    loaded.database.env = env.get();
    const std::string path = "/" + std::string(WorkloadName(workload));
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::unique_ptr<rocksdb::DB> db;
    ISOZONE_ASSERT_OK(OpenInto(&db, ISOZONE_OPEN(Open, loaded.database, path, loaded.families, &handles)));
    for (uint64_t i = 0; i < 10'000; ++i) {
      ISOZONE_ASSERT_OK(db->Put({}, Key(i), Bytes(1000, i)));
    }
    ISOZONE_ASSERT_OK(db->Flush({}));
    std::string value;
    ISOZONE_ASSERT_OK(db->Get({}, Key(4711), &value));
    EXPECT_EQ(value, Bytes(1000, 4711));
    for (auto* handle : handles) ISOZONE_ASSERT_OK(db->DestroyColumnFamilyHandle(handle));
    ISOZONE_ASSERT_OK(db->Close());
  }
}

}  // namespace
}  // namespace isozone
