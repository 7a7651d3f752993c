#include "rocksdb/steering/driver_settings.h"

#include <gtest/gtest.h>
#include <rocksdb/options.h>

namespace isozone {
namespace {

TEST(DriverSettingsTest, TheShapeIsThatOfTheOptions) {
  rocksdb::Options options;
  options.num_levels = 5;
  options.max_bytes_for_level_base = 1000;
  options.max_bytes_for_level_multiplier = 2.5;
  options.level0_file_num_compaction_trigger = -1;
  options.target_file_size_base = 100;
  options.write_buffer_size = 65'536;
  options.soft_pending_compaction_bytes_limit = 7;
  options.hard_pending_compaction_bytes_limit = 8;
  const SteeredShape shape = ShapeOf(options, false);
  EXPECT_EQ(shape.levels, 5);
  EXPECT_EQ(shape.level_base_bytes, 1000U);
  EXPECT_EQ(shape.level_factor, 2.5);
  EXPECT_FALSE(shape.dynamic_levels);
  EXPECT_EQ(shape.level0_files, 1U) << "level 0 is not compacted without a table";
  EXPECT_EQ(shape.table_bytes, 100U);
  EXPECT_EQ(shape.memtable_bytes, 65'536U);
  EXPECT_EQ(shape.debt.soft_bytes, 7U);
  EXPECT_EQ(shape.debt.hard_bytes, 8U);
}

}  // namespace
}  // namespace isozone
