// Names that are given by path, and by directory and name, are the same names and change in the same way.

#include "store/mount/namespace.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/mount/mounted_file_system.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr Where kA{"/d/a"};
constexpr Where kB{"/d/b"};

class NamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    ISOZONE_ASSERT_OK(volume_.Mount());
    names_ = std::make_unique<Namespace>(context().catalog);
    directory_ = InodeId(MakeDirectory({"/d"}));
    file_ = InodeId(names_->Make(kA, Inode(), Times::kStay)->inode);
  }

  MountContext& context() { return static_cast<MountedFileSystem&>(volume_.fs()).context(); }
  InodeFiles& inodes() { return volume_.fs().inodes(); }
  Where In(std::string_view name) const { return {name, directory_}; }
  uint64_t MakeDirectory(const Where& where) {
    Inode inode;
    inode.is_directory = true;
    const auto made = names_->Make(where, std::move(inode), Times::kStay);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made->inode;
  }
  std::vector<std::string> NamesIn(InodeId directory) const {
    std::vector<std::string> names;
    names_->VisitNames(directory, [&](std::string_view name, const Inode&) { names.emplace_back(name); });
    return names;
  }
  FileTime ChangedAt(InodeId inode) { return inodes().GetAttributes(inode.value())->changed; }

  TestVolume volume_;
  std::unique_ptr<Namespace> names_;
  InodeId directory_;
  InodeId file_;  // "/d/a"
};

TEST_F(NamespaceTest, APathAndANameInADirectoryAreOnePlace) {
  EXPECT_EQ(names_->Find(kA).value(), file_);
  EXPECT_EQ(names_->Find(In("a")).value(), file_);
  ISOZONE_ASSERT_OK(names_->Link(file_, In("b"), Times::kStay));
  ISOZONE_ASSERT_OK(names_->Rename(kB, In("c"), RenameMode::kReplace, Times::kStay));
  EXPECT_THAT(NamesIn(directory_), testing::ElementsAre("a", "c"));
  ISOZONE_ASSERT_OK(names_->Unlink({"/d/c"}, Times::kStay));
  ISOZONE_ASSERT_OK(names_->Unlink(In("a"), Times::kStay));
  ISOZONE_ASSERT_OK(names_->RemoveDirectory({"d", kRootInode}, Times::kStay));
  EXPECT_THAT(NamesIn(directory_), testing::IsEmpty());
}

TEST_F(NamespaceTest, TimesChangeWhereTheCallSaysSo) {
  for (const Times times : {Times::kStay, Times::kChange}) {
    FileTime directory_before = ChangedAt(directory_);
    FileTime file_before = ChangedAt(file_);
    const auto expect_times = [&](bool of_file) {
      EXPECT_EQ(ChangedAt(directory_) > directory_before, times == Times::kChange);
      EXPECT_EQ(ChangedAt(file_) > file_before, of_file && times == Times::kChange);
      directory_before = ChangedAt(directory_);
      file_before = ChangedAt(file_);
    };
    ISOZONE_ASSERT_OK(names_->Link(file_, kB, times));
    expect_times(true);
    ISOZONE_ASSERT_OK(names_->Rename(In("b"), In("c"), RenameMode::kReplace, times));
    expect_times(true);
    ISOZONE_ASSERT_OK(names_->Rename(In("c"), {"/c"}, RenameMode::kNoReplace, times));
    expect_times(true);
    ISOZONE_ASSERT_OK(names_->Make(In("e"), Inode(), times).status());
    expect_times(false);
    ISOZONE_ASSERT_OK(names_->Rename(In("e"), {"/c"}, RenameMode::kExchange, times));
    expect_times(true);
    ISOZONE_ASSERT_OK(names_->Rename({"/c"}, In("e"), RenameMode::kReplace, times));
    expect_times(true);
    ISOZONE_ASSERT_OK(names_->Unlink(In("e"), times));
    expect_times(false);
  }
}

// Every change is one record, whoever asks for it; a refused one is none.
TEST_F(NamespaceTest, AChangeIsOneRecord) {
  for (const Times times : {Times::kStay, Times::kChange}) {
    uint64_t sequence = context().catalog.journal->last_sequence();
    const auto expect_records = [&](uint64_t records) {
      EXPECT_EQ(context().catalog.journal->last_sequence(), sequence + records);
      sequence = context().catalog.journal->last_sequence();
    };
    ISOZONE_ASSERT_OK(names_->Make(kB, Inode(), times).status());
    expect_records(1);
    ISOZONE_ASSERT_OK(names_->Rename(kA, kB, RenameMode::kExchange, times));
    expect_records(1);
    ISOZONE_ASSERT_OK(names_->Rename(kA, In("b"), RenameMode::kReplace, times));
    expect_records(1);
    EXPECT_EQ(names_->Unlink(kA, times).code(), StatusCode::kNotFound);
    EXPECT_EQ(names_->Link(file_, kA, times).code(), StatusCode::kNotFound);  // it was replaced
    EXPECT_EQ(names_->RemoveDirectory(kB, times).code(), StatusCode::kNotDirectory);
    EXPECT_EQ(names_->RemoveDirectory({"/d"}, times).code(), StatusCode::kNotEmpty);
    EXPECT_EQ(names_->Unlink({"/d"}, times).code(), StatusCode::kIsDirectory);
    expect_records(0);
    ISOZONE_ASSERT_OK(names_->Unlink(In("b"), times));
    expect_records(1);
    file_ = InodeId(names_->Make(kA, Inode(), times)->inode);
  }
}

TEST_F(NamespaceTest, ChecksAreTheSameForBothKindsOfNames) {
  const InodeId inside(MakeDirectory(In("inside")));
  const std::string long_name(256, 'n');
  for (const Where& where : {In(".."), In(long_name), Where{"/d/.."}, Where{"/d/./"}, Where{"d/x"}, Where{"/"}}) {
    EXPECT_EQ(names_->Make(where, Inode(), Times::kStay).status().code(), StatusCode::kInvalidArgument) << where.name;
    EXPECT_EQ(names_->Rename(kA, where, RenameMode::kReplace, Times::kStay).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(names_->Link(file_, where, Times::kStay).code(), StatusCode::kInvalidArgument);
  }
  for (const Where& where : {Where{"/d/inside/d"}, Where{"d", inside}}) {
    EXPECT_EQ(names_->Rename({"/d"}, where, RenameMode::kReplace, Times::kStay).code(), StatusCode::kInvalidArgument);
  }
  for (const Where& where : {Where{"/d/a/x"}, Where{"x", file_}}) {
    EXPECT_EQ(names_->Make(where, Inode(), Times::kStay).status().code(), StatusCode::kNotDirectory);
  }
  for (const Where& where : {kA, In("a")}) {
    EXPECT_EQ(names_->Make(where, Inode(), Times::kStay).status().code(), StatusCode::kAlreadyExists);
    EXPECT_EQ(names_->Rename(In("inside"), where, RenameMode::kReplace, Times::kStay).code(),
              StatusCode::kNotDirectory);
    EXPECT_EQ(names_->Rename(where, In("inside"), RenameMode::kReplace, Times::kStay).code(), StatusCode::kIsDirectory);
  }
  EXPECT_EQ(names_->Find({"a", InodeId()}).status().code(), StatusCode::kNotFound);  // 0 is no inode, and no path
}

TEST_F(NamespaceTest, AFileLeavesItsDetailsToItsHandlesHoweverItIsRemoved) {
  for (const Where& where : {kA, In("a")}) {
    const auto file = inodes().Open(names_->Find(where)->value()).value();
    const uint64_t inode = file->inode();
    ISOZONE_ASSERT_OK(inodes().SetXattr(inode, "user.x", "value", XattrMode::kSet));
    ISOZONE_ASSERT_OK(inodes().SetAttributes(inode, {0600, 7, {}, {}}).status());
    ISOZONE_ASSERT_OK(names_->Unlink(where, Times::kStay));
    EXPECT_EQ(inodes().GetXattr(inode, "user.x").value(), "value");
    ISOZONE_ASSERT_OK(inodes().SetAttributes(inode, {{}, {}, 8, {}}).status());
    const FileAttributes attributes = inodes().GetAttributes(inode).value();
    EXPECT_EQ(attributes.links, 0U);
    EXPECT_EQ(attributes.mode, 0600U);
    EXPECT_EQ(attributes.user, 7U);
    EXPECT_EQ(attributes.group, 8U);
    ISOZONE_ASSERT_OK(names_->Make(kA, Inode(), Times::kStay).status());
  }
}

}  // namespace
}  // namespace isozone
