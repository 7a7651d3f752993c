#include "store/metadata/directory_table.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using Names = std::map<std::string, InodeId, std::less<>>;

Names All(const DirectoryTable& table) {
  Names names;
  for (const auto& [name, inode] : table) {
    EXPECT_TRUE(names.empty() || names.rbegin()->first < name) << "in order";
    names.emplace(name, inode);
  }
  return names;
}

TEST(DirectoryTableTest, ANameIsThereOnce) {
  DirectoryTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.Insert("a", InodeId(7)));
  EXPECT_FALSE(table.Insert("a", InodeId(8)));
  EXPECT_EQ(table.Find("a"), InodeId(7));
  EXPECT_FALSE(table.Find("b").has_value());
  table.Erase("b");
  table.Erase("a");
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.begin() == table.end());
}

TEST(DirectoryTableTest, NamesOfEveryLengthFit) {
  DirectoryTable table;
  for (size_t length = 1; length <= 255; ++length) EXPECT_TRUE(table.Insert(std::string(length, 'x'), InodeId(length)));
  for (size_t length = 1; length <= 255; ++length) EXPECT_EQ(table.Find(std::string(length, 'x')), InodeId(length));
  EXPECT_EQ(All(table).size(), 255U);
}

// Compares the table with a map of few names and of many, which come and go in any order and in rising order.
TEST(DirectoryTableTest, IsAsAMap) {
  const uint64_t seed = TestSeed(20261125);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  DirectoryTable table;
  Names model;
  uint64_t next = 0;
  for (int i = 0; i < 200'000; ++i) {
    // The table grows for a while, and then it shrinks for a while.
    const bool grows = i / 10'000 % 2 == 0;
    std::string name = fmt::format("{:06}.sst", random.Below(6000));
    if (random.Chance(0.3)) name = fmt::format("{:06}.sst", ++next % 6000);
    if (random.Chance(0.05)) name = std::string(random.Between(1, 255), static_cast<char>(random.Between(1, 255)));
    if (random.Chance(grows ? 0.8 : 0.1)) {
      const InodeId inode(random.Next() >> random.Below(64));
      ASSERT_EQ(table.Insert(name, inode), model.emplace(name, inode).second);
    } else {
      table.Erase(name);
      model.erase(name);
    }
    const auto found = model.find(name);
    ASSERT_EQ(table.Find(name), found == model.end() ? std::nullopt : std::optional(found->second));
    const auto behind = model.upper_bound(name);
    const auto at = table.Behind(name);
    ASSERT_EQ(at == table.end(), behind == model.end());
    if (behind != model.end()) {
      ASSERT_EQ((*at).name, behind->first);
    }
    ASSERT_EQ(table.empty(), model.empty());
    if (i % 1000 == 0) {
      ASSERT_EQ(All(table), model);
    }
  }
}

}  // namespace
}  // namespace isozone
