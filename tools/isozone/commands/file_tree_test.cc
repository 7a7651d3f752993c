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

TEST_P(LocalTreeTest, ATemporaryNameThatIsALinkLeadsNowhere) {
  std::ofstream(directory_ + "/victim") << "kept";
  const std::string temporary = tree_->TemporaryName(directory_ + "/file");
  for (const bool is_symlink : {true, false}) {
    for (const bool resumes : {true, false}) {
      is_symlink ? std::filesystem::create_symlink(directory_ + "/victim", temporary)
                 : std::filesystem::create_hard_link(directory_ + "/victim", temporary);
      const auto sink =
          resumes ? tree_->Resume(directory_ + "/file", 0, 3, 0640) : tree_->Create(directory_ + "/file", 3, 0640);
      ASSERT_TRUE(sink.ok()) << sink.status().ToString();
      ASSERT_TRUE((*sink)->Append(std::as_bytes(std::span("new", 3))).ok());
      ASSERT_TRUE((*sink)->Finish().ok());
      EXPECT_EQ(Content("victim"), "kept");
      EXPECT_EQ(Content("file"), "new");
      EXPECT_FALSE(std::filesystem::is_symlink(directory_ + "/file"));
      std::filesystem::remove(temporary);
    }
  }
}

TEST_P(LocalTreeTest, AFileWithAnotherNameIsNotContinued) {
  std::ofstream(directory_ + "/victim") << "kept";
  const std::string temporary = tree_->TemporaryName(directory_ + "/file");
  std::filesystem::create_hard_link(directory_ + "/victim", temporary);
  EXPECT_TRUE(tree_->Resume(directory_ + "/file", 2, 3, 0640).status().Is(StatusCode::kAlreadyExists));
  std::filesystem::remove(temporary);
  std::filesystem::create_symlink(directory_ + "/victim", temporary);
  EXPECT_TRUE(tree_->Resume(directory_ + "/file", 2, 3, 0640).status().Is(StatusCode::kAlreadyExists));
  EXPECT_EQ(Content("victim"), "kept");
}

TEST_P(LocalTreeTest, AFileThatIsContinuedKeepsItsPermissions) {
  const std::string path = directory_ + "/file";
  {
    const auto begun = tree_->Resume(path, 0, 6, 0440);
    ASSERT_TRUE(begun.ok() && (*begun)->Append(std::as_bytes(std::span("one", 3))).ok());
  }
  const auto sink = tree_->Resume(path, 3, 6, 0440);
  ASSERT_TRUE(sink.ok()) << sink.status().ToString();
  ASSERT_TRUE((*sink)->Append(std::as_bytes(std::span("two", 3))).ok());
  ASSERT_TRUE((*sink)->Finish().ok());
  EXPECT_EQ(Content("file"), "onetwo");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0440));
}

TEST_P(LocalTreeTest, ANameMayBeAsLongAsTheFileSystemLetsIt) {
  for (const size_t length : {244U, 245U, 255U}) {
    const std::string name(length, 'n');
    for (int times = 0; times < 2; ++times) {
      const auto sink = Begin(name, "content");
      ASSERT_TRUE(sink->Finish().ok());
      EXPECT_EQ(Content(name), "content");
    }
  }
  EXPECT_EQ(FilesThere(), 3U);
}

TEST_P(LocalTreeTest, ASymbolicLinkIsNoDirectory) {
  std::filesystem::create_directory(directory_ + "/real");
  std::filesystem::create_directory_symlink(directory_ + "/real", directory_ + "/link");
  EXPECT_TRUE(tree_->MakeDirectory(directory_ + "/real", 0755).ok());
  EXPECT_TRUE(tree_->MakeDirectory(directory_ + "/link", 0755).Is(StatusCode::kNotDirectory));
}

INSTANTIATE_TEST_SUITE_P(Names, LocalTreeTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Temporary"; });

}  // namespace
}  // namespace isozone::cli
