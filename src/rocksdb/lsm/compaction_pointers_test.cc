#include "rocksdb/lsm/compaction_pointers.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(CompactionPointersTest, TextGivesTheSamePointersBack) {
  CompactionPointers pointers;
  EXPECT_EQ("", pointers.ToText());
  pointers.Set(1, "key");
  pointers.Set(2, "");
  pointers.Set(31, std::string("\xFF\0\n ", 4));
  EXPECT_EQ("1 6b6579\n2 \n31 ff000a20\n", pointers.ToText());
  const auto back = CompactionPointers::FromText(pointers.ToText());
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(pointers, back.value());
  EXPECT_EQ(CompactionPointers(), CompactionPointers::FromText("").value());
}

TEST(CompactionPointersTest, AnythingElseIsRefused) {
  const std::vector<std::string> wrong = {
      "1 6b",     "1\n",          " 6b\n",
      "1 6\n",    "1 6B\n",       "1 6g\n",
      "1  6b\n",  "01 6b\n",      "+1 6b\n",
      "-1 6b\n",  "32 6b\n",      "99999999999 6b\n",
      "x 6b\n",   "2 6b\n1 6b\n", "1 6b\n1 6b\n",
      "1 6b\n\n", "1 6b\r\n",     "1 " + std::string(2 * CompactionPointers::kMaxKeyBytes + 2, '0') + "\n"};
  for (const std::string& text : wrong) {
    const auto result = CompactionPointers::FromText(text);
    EXPECT_TRUE(result.status().Is(StatusCode::kCorruption)) << text.substr(0, 40);
  }
}

TEST(CompactionPointersTest, ADamagedLineIsNamed) {
  EXPECT_EQ("compaction pointers: line 2 has a damaged key",
            CompactionPointers::FromText("1 6b\n2 6\n").status().message());
}

}  // namespace
}  // namespace isozone
