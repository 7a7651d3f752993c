#include "isozone/database/manifest_tables.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/varint.h"

namespace isozone::cli {
namespace {

std::string Number(uint64_t value) {
  std::string text;
  PutVarint(value, text);
  return text;
}
std::string Numbers(std::initializer_list<uint64_t> values) {
  std::string text;
  for (const uint64_t value : values) text += Number(value);
  return text;
}
std::string Text(std::string_view text) { return Number(text.size()) + std::string(text); }
// As keys are in a MANIFEST.
std::string Key(std::string_view user_key) { return Text(std::string(user_key) + "SEQUENCE"); }

// As RocksDB 7.8 and later write it.
std::string NewTable(uint64_t level, uint64_t number, std::string_view smallest, std::string_view largest) {
  return Numbers({103, level, number, 4096}) + Key(smallest) + Key(largest) + Numbers({7, 9, 5}) + Text("x") +
         Number(1);
}
std::string Removed(uint64_t level, uint64_t number) { return Numbers({6, level, number}); }
std::string OfFamily(uint64_t family) { return Numbers({200, family}); }

std::string Record(uint8_t type, std::string_view content) {
  const std::string covered = static_cast<char>(type) + std::string(content);
  const uint32_t crc = Crc32c(covered.data(), covered.size());
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
  std::string record;
  for (int i = 0; i < 4; ++i) record += static_cast<char>(masked >> (8 * i));
  record += static_cast<char>(content.size());
  record += static_cast<char>(content.size() >> 8);
  return record + covered;
}

bool Add(std::string_view block, ManifestTables& tables) { return tables.AddBlock(std::as_bytes(std::span(block))); }

ManifestTables TablesOf(std::string_view block) {
  ManifestTables tables;
  Add(block, tables);
  return tables;
}

TEST(ManifestTablesTest, LiveTablesHaveTheirLevelsAndKeys) {
  const ManifestTables tables = TablesOf(Record(1, Numbers({3, 12}) + NewTable(0, 8, "apple", "pear")) +
                                         Record(1, NewTable(1, 9, "a", "b") + NewTable(6, 10, "b", "c")));
  ASSERT_EQ(tables.tables().size(), 3U);
  const ManifestTable& table = tables.tables().at(8);
  EXPECT_EQ(table.smallest.Text(), "apple");
  EXPECT_EQ(table.largest.Text(), "pear");
  EXPECT_EQ(table.level, 0U);
  EXPECT_EQ(tables.tables().at(10).level, 6U);
  EXPECT_EQ(tables.ColumnFamilyName(table.column_family), "default");
}

TEST(ManifestTablesTest, RemovedTablesAreNotAliveAndMovedOnesHaveTheirNewLevel) {
  const ManifestTables tables = TablesOf(Record(1, NewTable(0, 8, "a", "b") + NewTable(0, 9, "c", "d")) +
                                         Record(1, Removed(0, 8) + Removed(0, 9) + NewTable(1, 9, "c", "d")));
  ASSERT_EQ(tables.tables().size(), 1U);
  EXPECT_EQ(tables.tables().at(9).level, 1U);
}

TEST(ManifestTablesTest, TablesAreOfTheirColumnFamilyAndGoWithIt) {
  const std::string added = Record(1, OfFamily(2) + Number(201) + Text("pictures")) +
                            Record(1, OfFamily(2) + NewTable(3, 8, "a", "b")) + Record(1, NewTable(3, 9, "a", "b"));
  const ManifestTables tables = TablesOf(added);
  EXPECT_EQ(tables.ColumnFamilyName(tables.tables().at(8).column_family), "pictures");
  EXPECT_EQ(tables.ColumnFamilyName(tables.tables().at(9).column_family), "default");
  const ManifestTables dropped = TablesOf(added + Record(1, OfFamily(2) + Number(202)));
  EXPECT_EQ(dropped.tables().size(), 1U);
  EXPECT_TRUE(dropped.tables().contains(9));
}

TEST(ManifestTablesTest, EveryTagThatRocksDBWritesIsKnown) {
  const std::vector<std::string> fields = {
      Number(1) + Text("leveldb.BytewiseComparator"),
      Numbers({2, 5, 3, 6, 4, 7, 9, 8, 10, 9, 203, 4, 300, 1}),
      Numbers({5, 2}) + Key("cursor"),
      Numbers({400, 3, 10, 1000}) + Text("crc") + Text("1234") + Number(0),
      Numbers({401, 3, 10, 1000, 77}) + Text("new") + Number(0),
      Numbers({8192 + 4, 3, 2, 100, 1}),
      Numbers({8192 + 5, 3}),
      Number(8192 + 1) + Text("identity"),
      Number(8192 + 1000) + Text("of a later version"),
  };
  for (const std::string& field : fields) {
    const ManifestTables tables = TablesOf(Record(1, field + NewTable(1, 8, "a", "b")));
    EXPECT_EQ(tables.tables().size(), 1U) << ::testing::PrintToString(field);
  }
  const std::string keys = Key("a") + Key("b");
  for (const std::string& table : {Numbers({7, 1, 8, 10}) + keys, Numbers({100, 1, 8, 10}) + keys + Numbers({1, 2}),
                                   Numbers({102, 1, 8, 0, 10}) + keys + Numbers({1, 2})}) {
    const ManifestTables tables = TablesOf(Record(1, table + Removed(0, 1)));
    ASSERT_EQ(tables.tables().size(), 1U) << ::testing::PrintToString(table);
    EXPECT_EQ(tables.tables().at(8).largest.Text(), "b");
  }
}

TEST(ManifestTablesTest, AnUnknownTagMakesAllTablesUnknown) {
  ManifestTables tables = TablesOf(Record(1, NewTable(1, 8, "a", "b")));
  EXPECT_FALSE(Add(Record(1, Number(777) + Text("?")), tables));
  EXPECT_TRUE(tables.tables().empty());
}

TEST(ManifestTablesTest, AnEditMayTakeSeveralRecordsAndBlocks) {
  std::string edit;
  for (uint64_t number = 1; number <= 1000; ++number) edit += NewTable(2, number, std::string(40, 'a'), "b");
  ASSERT_GT(edit.size(), ManifestTables::kBlockBytes);
  const size_t first = ManifestTables::kBlockBytes - 7;
  const std::string_view whole = edit;
  ManifestTables tables;
  EXPECT_TRUE(Add(Record(2, whole.substr(0, first)), tables));
  EXPECT_TRUE(tables.tables().empty());
  EXPECT_TRUE(Add(Record(3, whole.substr(first, first)), tables));
  EXPECT_TRUE(Add(Record(4, whole.substr(2 * first)) + Record(1, Removed(2, 7)) + std::string(20, '\0'), tables));
  EXPECT_EQ(tables.tables().size(), 999U);
}

TEST(ManifestTablesTest, ReadingEndsAtWhatIsDamagedOrCutOff) {
  const std::string good = Record(1, NewTable(1, 8, "a", "b"));
  const std::string second = Record(1, NewTable(1, 9, "c", "d"));
  for (size_t i = 0; i < second.size(); ++i) {
    std::string damaged = second;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    EXPECT_EQ(TablesOf(good + damaged).tables().size(), 1U) << i;
    EXPECT_EQ(TablesOf(good + second.substr(0, i)).tables().size(), 1U) << i;
  }
  EXPECT_EQ(TablesOf(good + second).tables().size(), 2U);
}

TEST(ManifestTablesTest, KeysAreTextWhereTheyCanBe) {
  EXPECT_EQ((TableKey{"user:17", false}.Text()), "user:17");
  EXPECT_EQ((TableKey{std::string("\0\x0A", 2), false}.Text()), "0x000A");
  EXPECT_EQ((TableKey{"\xC3\xA4", false}.Text()), "0xC3A4");
  EXPECT_EQ((TableKey{"0x1", false}.Text()), "0x307831");
  EXPECT_EQ((TableKey{"", false}.Text()), "0x");
  const ManifestTables tables = TablesOf(Record(1, NewTable(1, 8, std::string(100, 'k'), "z")));
  std::string cut(ManifestTables::kMostKeyBytes, 'k');
  cut += "...";
  EXPECT_EQ(tables.tables().at(8).smallest.Text(), cut);
}

}  // namespace
}  // namespace isozone::cli
