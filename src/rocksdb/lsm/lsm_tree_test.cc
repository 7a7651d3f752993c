#include "rocksdb/lsm/lsm_tree.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

// The other way round.
class ReverseOrder final : public KeyOrder {
 public:
  int Compare(std::string_view a, std::string_view b) const override { return b.compare(a); }
};

CompactionPick PickFiles(std::vector<CompactionPick::Input> inputs, int output_level, const std::string& range) {
  CompactionPick pick;
  pick.inputs = std::move(inputs);
  pick.output_level = output_level;
  pick.smallest = range.substr(0, range.find('-'));
  pick.largest = range.substr(range.find('-') + 1);
  return pick;
}

std::vector<uint64_t> Numbers(const LsmTree& tree, int level) {
  std::vector<uint64_t> numbers;
  for (const LsmFile* file : tree.files(level)) numbers.push_back(file->number);
  return numbers;
}

TEST(LsmTreeTest, FilesAreSortedByKeyAndInLevel0ByAge) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "m-p"}, {1, 2, "a-c"}, {1, 3, "e-g"}, {0, 4, "k-z"}, {0, 5, "a-b"}});
  EXPECT_EQ((std::vector<uint64_t>{2, 3, 1}), Numbers(tree, 1));
  EXPECT_EQ((std::vector<uint64_t>{4, 5}), Numbers(tree, 0));
  EXPECT_EQ(12 * kMiB, tree.bytes(1));
  EXPECT_EQ(1U, tree.FirstEndingAt(1, "d"));
  EXPECT_EQ(1U, tree.FirstEndingAt(1, "g"));
  EXPECT_EQ(2U, tree.FirstBeginningAfter(1, "e"));
}

TEST(LsmTreeTest, TheOrderOfKeysIsTheCallers) {
  const ReverseOrder order;
  LsmTree tree(OnlyLevel(1), order);
  AddFiles(tree, {{1, 1, "c-a"}, {1, 2, "p-m"}});
  EXPECT_EQ((std::vector<uint64_t>{2, 1}), Numbers(tree, 1));
  EXPECT_FALSE(tree.AddFile(1, MakeFile({1, 3, "a-b"})).ok());
}

TEST(LsmTreeTest, FilesThatCannotBeAreRefused) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "c-f"}, {1, 2, "h-k"}});
  for (const TestFile& file : std::vector<TestFile>{{1, 3, "a-d"},
                                                    {1, 3, "d-e"},
                                                    {1, 3, "e-i"},
                                                    {1, 3, "a-z"},
                                                    {1, 3, "c-f"},
                                                    {1, 3, "b-a"},
                                                    {1, 2, "x-y"},
                                                    {5, 3, "x-y"},
                                                    {-1, 3, "x-y"}}) {
    const Status added = tree.AddFile(file.level, MakeFile(file));
    EXPECT_TRUE(added.Is(StatusCode::kInvalidArgument)) << file.range;
  }
  // One user key in two files is what a database with snapshots may have.
  AddFiles(tree, {{1, 3, "f-h"}, {1, 4, "a-c"}});
  EXPECT_EQ((std::vector<uint64_t>{4, 1, 3, 2}), Numbers(tree, 1));
}

TEST(LsmTreeTest, OutputsTakeThePlaceOfInputs) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "c-f"}, {1, 2, "h-k"}, {2, 3, "a-b"}, {2, 4, "d-e"}, {2, 5, "m-n"}});
  const auto job = tree.Begin(PickFiles({{1, {1}}, {2, {4}}}, 2, "c-f"));
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_TRUE(tree.busy(*tree.Find(1)));
  EXPECT_EQ(4 * kMiB, tree.idle_bytes(1));
  EXPECT_TRUE(tree.RemoveFile(4).Is(StatusCode::kBusy));
  std::vector<LsmFile> beyond;
  beyond.push_back(MakeFile({2, 6, "c-g"}));
  EXPECT_TRUE(tree.Finish(*job, beyond).Is(StatusCode::kInvalidArgument));
  std::vector<LsmFile> outputs;
  outputs.push_back(MakeFile({2, 6, "c-d", kMiB}));
  outputs.push_back(MakeFile({2, 7, "e-f", 2 * kMiB, {}, true}));
  ASSERT_TRUE(tree.Finish(*job, outputs).ok());
  EXPECT_EQ((std::vector<uint64_t>{2}), Numbers(tree, 1));
  EXPECT_EQ((std::vector<uint64_t>{3, 6, 7, 5}), Numbers(tree, 2));
  EXPECT_EQ(11 * kMiB, tree.bytes(2));
  EXPECT_EQ(1U, tree.short_lived(2).count(7));
  EXPECT_EQ(nullptr, tree.Find(1));
  EXPECT_TRUE(tree.Finish(*job, {}).Is(StatusCode::kNotFound));
}

TEST(LsmTreeTest, AFailedCompactionLeavesNothingBehind) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "c-f"}, {1, 2, "h-k"}});
  CompactionPick pick = PickFiles({{1, {1}}}, 2, "c-f");
  pick.advance = CompactionPick::Advance{1, "h"};
  const auto job = tree.Begin(pick);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ("h", tree.pointers().Get(1));
  ASSERT_TRUE(tree.Abandon(*job).ok());
  EXPECT_EQ(std::nullopt, tree.pointers().Get(1));
  EXPECT_EQ(8 * kMiB, tree.idle_bytes(1));
  EXPECT_TRUE(tree.Begin(pick).ok());
}

TEST(LsmTreeTest, DecisionsThatRocksDbWouldWidenAreRefused) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{0, 1, "a-e"},
                  {0, 2, "c-f"},
                  {1, 3, "a-c"},
                  {1, 4, "e-g"},
                  {1, 5, "g-k"},
                  {1, 6, "m-p"},
                  {2, 7, "b-d"},
                  {2, 8, "n-z"}});
  const std::vector<std::pair<std::string, CompactionPick>> wrong = {
      {"nothing", PickFiles({}, 1, "a-b")},
      {"a level without files", PickFiles({{1, {}}}, 2, "a-b")},
      {"upwards", PickFiles({{1, {6}}}, 1, "m-p")},
      {"below the last level", PickFiles({{1, {6}}}, 5, "m-p")},
      {"a file of another level", PickFiles({{1, {7}}}, 2, "b-d")},
      {"a gap", PickFiles({{1, {3, 6}}, {2, {7, 8}}}, 2, "a-z")},
      {"older files of level 0 are left", PickFiles({{0, {2}}, {1, {3, 4, 5}}}, 1, "a-k")},
      {"a user key is shared", PickFiles({{1, {4}}}, 2, "e-g")},
      {"a lower file overlaps", PickFiles({{1, {6}}}, 2, "m-p")},
      {"a level between overlaps", PickFiles({{0, {1}}, {2, {7}}}, 2, "a-e")},
      {"levels out of order", PickFiles({{2, {8}}, {1, {6}}}, 2, "m-z")},
      {"another range", PickFiles({{1, {6}}, {2, {8}}}, 2, "m-p")},
  };
  for (const auto& [what, pick] : wrong) {
    EXPECT_TRUE(tree.Begin(pick).status().Is(StatusCode::kInvalidArgument)) << what;
  }
  EXPECT_TRUE(tree.Begin(PickFiles({{1, {6}}, {2, {8}}}, 2, "m-z")).ok());
  EXPECT_TRUE(tree.Begin(PickFiles({{1, {4, 5}}}, 2, "e-k")).ok());
}

TEST(LsmTreeTest, CompactionsThatWouldDisturbEachOtherConflict) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-b"}, {1, 3, "h-k"}, {2, 4, "c-d"}, {2, 5, "p-q"}, {3, 6, "o-r"}});
  const CompactionPick both = PickFiles({{1, {1, 3}}, {2, {4}}}, 2, "a-k");
  const auto job = tree.Begin(both);
  ASSERT_TRUE(job.ok());
  // New in level 1, between the inputs: its output would overlap theirs.
  AddFiles(tree, {{1, 7, "e-f"}, {0, 8, "m-n"}, {0, 9, "m-z"}});
  EXPECT_TRUE(tree.Conflicts(PickFiles({{1, {7}}}, 2, "e-f")));
  // Level 2 and what is written to it are of no concern for level 0, nor for what lies beside.
  EXPECT_FALSE(tree.Conflicts(PickFiles({{0, {8}}}, 1, "m-n")));
  EXPECT_FALSE(tree.Conflicts(PickFiles({{2, {5}}, {3, {6}}}, 3, "o-r")));
  // Newer data would sink below what is being written to level 2.
  EXPECT_TRUE(tree.Conflicts(PickFiles({{1, {7}}}, 3, "e-f")));
  EXPECT_TRUE(tree.Conflicts(both));
  ASSERT_TRUE(tree.Abandon(*job).ok());
  EXPECT_FALSE(tree.Conflicts(PickFiles({{1, {7}}}, 2, "e-f")));
}

TEST(LsmTreeTest, TheWriterOfARangeIsFound) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-f"}, {1, 2, "h-k"}, {2, 3, "c-d"}});
  const CompactionPick pick = PickFiles({{1, {1}}, {2, {3}}}, 2, "a-f");
  const auto job = tree.Begin(pick);
  ASSERT_TRUE(job.ok());
  const CompactionPick* const writer = tree.WriterOf(2, "f", "g");
  ASSERT_NE(nullptr, writer);
  EXPECT_EQ(pick, *writer);
  EXPECT_EQ(writer, tree.WriterOf(2, "c", "c"));
  EXPECT_EQ(nullptr, tree.WriterOf(1, "f", "g"));
  EXPECT_EQ(nullptr, tree.WriterOf(2, "g", "p"));
  ASSERT_TRUE(tree.Abandon(*job).ok());
  EXPECT_EQ(nullptr, tree.WriterOf(2, "f", "g"));
}

TEST(LsmTreeTest, OutputsOfAnotherCompactionMayComeBetweenInputs) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-b"}, {2, 2, "c-d"}, {2, 3, "m-n"}});
  const auto lower = tree.Begin(PickFiles({{2, {2, 3}}}, 3, "c-n"));
  ASSERT_TRUE(lower.ok());
  AddFiles(tree, {{1, 4, "f-g"}});
  const auto upper = tree.Begin(PickFiles({{1, {4}}}, 2, "f-g"));
  ASSERT_TRUE(upper.ok()) << upper.status().ToString();
  std::vector<LsmFile> outputs;
  outputs.push_back(MakeFile({2, 5, "f-g"}));
  ASSERT_TRUE(tree.Finish(*upper, outputs).ok());
  ASSERT_EQ((std::vector<uint64_t>{2, 5, 3}), Numbers(tree, 2));
  outputs[0] = MakeFile({3, 6, "c-n"});
  ASSERT_TRUE(tree.Finish(*lower, outputs).ok());
  EXPECT_EQ((std::vector<uint64_t>{5}), Numbers(tree, 2));
  EXPECT_EQ((std::vector<uint64_t>{6}), Numbers(tree, 3));
}

TEST(LsmTreeTest, ATrivialMoveKeepsTheFile) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "c-f", kMiB, {5}}, {2, 2, "g-h", kMiB, {6}}});
  CompactionPick pick = PickFiles({{1, {1}}}, 2, "c-f");
  pick.trivial_move = true;
  const auto job = tree.Begin(pick);
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(tree.Finish(*job, {}).ok());
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), Numbers(tree, 2));
  EXPECT_EQ(0U, tree.zones(1).count());
  EXPECT_EQ(2U, tree.zones(2).count());
}

TEST(LsmTreeTest, AZoneIsAsOldAsItsFirstFileWas) {
  LsmTree tree(OnlyLevel(1));
  AddFiles(tree, {{1, 1, "a-b", kMiB, {7}}, {1, 2, "c-d", kMiB, {7, 3}}, {1, 3, "e-f", kMiB, {3}}});
  EXPECT_EQ(2U, tree.zones(1).count());
  ASSERT_TRUE(tree.RemoveFile(1).ok());
  EXPECT_TRUE(tree.zones(1).Oldest(1).contains(ZoneId(7)));
  EXPECT_EQ(2U, tree.zones(1).OldestFile());
  ASSERT_TRUE(tree.RemoveFile(2).ok());
  EXPECT_TRUE(tree.zones(1).Oldest(5).contains(ZoneId(3)));
  EXPECT_EQ(3U, tree.zones(1).OldestFile());
}

}  // namespace
}  // namespace isozone
