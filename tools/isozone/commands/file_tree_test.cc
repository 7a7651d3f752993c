#include "isozone/commands/file_tree.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <gtest/gtest.h>

namespace isozone::cli {
namespace {

// Runs with files that have no name until they are complete, and with files that have a temporary one.
class LocalTreeTest : public testing::TestWithParam<bool> {
 protected:
  LocalTreeTest() : directory_(testing::TempDir() + "file-tree-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~LocalTreeTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<FileSink> Begin(const std::string& name, const std::string& content) {
    auto sink = tree_->Create(directory_ + "/" + name, content.size(), 0640);
    EXPECT_TRUE(sink.ok()) << sink.status().ToString();
    EXPECT_TRUE((*sink)->Append(std::as_bytes(std::span(content))).ok());
    return std::move(*sink);
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t FilesThere() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  const std::string directory_;
  const std::unique_ptr<FileTree> tree_ = MakeLocalTree(/*nameless=*/GetParam());
};

TEST_P(LocalTreeTest, AFileHasItsNameWhenItIsWhole) {
  const auto sink = Begin("file", "content");
  EXPECT_EQ(FilesThere(), GetParam() ? 0U : 1U);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/file"));
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_EQ(Content("file"), "content");
  EXPECT_EQ(FilesThere(), 1U);
}

TEST_P(LocalTreeTest, AFileTakesThePlaceOfAnother) {
  std::ofstream(directory_ + "/file") << "old";
  std::ofstream(directory_ + "/file" + FileTree::kTemporarySuffix) << "left by a process that was killed";
  const auto sink = Begin("file", "new");
  EXPECT_EQ(Content("file"), "old");
  ASSERT_TRUE(sink->Finish().ok());
  EXPECT_EQ(Content("file"), "new");
  EXPECT_EQ(FilesThere(), 1U);
}

TEST_P(LocalTreeTest, NothingIsLeftOfAFileThatWasGivenUp) {
  Begin("file", "content").reset();
  EXPECT_EQ(FilesThere(), 0U);
}

TEST_P(LocalTreeTest, AFileInADirectoryThatIsMissingIsAnError) {
  EXPECT_TRUE(tree_->Create(directory_ + "/none/file", 1, 0644).status().Is(StatusCode::kNotFound));
}

INSTANTIATE_TEST_SUITE_P(Names, LocalTreeTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Temporary"; });

}  // namespace
}  // namespace isozone::cli
