// Names, directories and locks, through rocksdb::FileSystem.

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>

#include "integration/scratch.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamesTest : public ScratchDevice {
 protected:
  void SetUp() override {
    ScratchDevice::SetUp();
    fs_ = Open();
    ASSERT_NE(fs_, nullptr);
  }
  IOStatus Exists(const std::string& name) { return fs_->FileExists(name, IOOptions(), nullptr); }
  std::vector<std::string> Children(const std::string& directory) {
    std::vector<std::string> names;
    ISOZONE_EXPECT_OK(fs_->GetChildren(directory, IOOptions(), &names, nullptr));
    std::sort(names.begin(), names.end());
    return names;
  }
  uint64_t Links(const std::string& name) {
    uint64_t links = 0;
    ISOZONE_EXPECT_OK(fs_->NumFileLinks(name, IOOptions(), &links, nullptr));
    return links;
  }

  std::shared_ptr<rocksdb::FileSystem> fs_;
};

TEST_F(NamesTest, MissingFilesAreReportedAsPosixDoes) {
  EXPECT_TRUE(Exists("/none").IsNotFound());
  std::unique_ptr<rocksdb::FSSequentialFile> sequential;
  EXPECT_TRUE(fs_->NewSequentialFile("/none", FileOptions(), &sequential, nullptr).IsPathNotFound());
  EXPECT_EQ(sequential, nullptr);
  std::unique_ptr<rocksdb::FSRandomAccessFile> random;
  EXPECT_TRUE(fs_->NewRandomAccessFile("/none", FileOptions(), &random, nullptr).IsPathNotFound());
  std::unique_ptr<rocksdb::FSRandomRWFile> random_rw;
  EXPECT_TRUE(fs_->NewRandomRWFile("/none", FileOptions(), &random_rw, nullptr).IsPathNotFound());
  std::unique_ptr<rocksdb::FSWritableFile> writable;
  EXPECT_TRUE(fs_->NewWritableFile("/no/parent", FileOptions(), &writable, nullptr).IsPathNotFound());
  std::unique_ptr<rocksdb::FSDirectory> directory;
  EXPECT_TRUE(fs_->NewDirectory("/none", IOOptions(), &directory, nullptr).IsPathNotFound());
  EXPECT_TRUE(fs_->DeleteFile("/none", IOOptions(), nullptr).IsPathNotFound());
  EXPECT_TRUE(fs_->RenameFile("/none", "/x", IOOptions(), nullptr).IsPathNotFound());
  uint64_t size = 7;
  EXPECT_TRUE(fs_->GetFileSize("/none", IOOptions(), &size, nullptr).IsPathNotFound());
  EXPECT_EQ(size, 0U);
  std::vector<std::string> children;
  EXPECT_TRUE(fs_->GetChildren("/none", IOOptions(), &children, nullptr).IsNotFound());
}

TEST_F(NamesTest, DirectoriesAreMadeListedAndRemoved) {
  ISOZONE_ASSERT_OK(fs_->CreateDir("/db", IOOptions(), nullptr));
  EXPECT_FALSE(fs_->CreateDir("/db", IOOptions(), nullptr).ok());
  ISOZONE_EXPECT_OK(fs_->CreateDirIfMissing("/db", IOOptions(), nullptr));
  WriteFile(*fs_, "/db/b", "2");
  WriteFile(*fs_, "/db/a", "1");
  EXPECT_THAT(Children("/db"), ElementsAre("a", "b"));
  EXPECT_THAT(Children("/db/"), ElementsAre("a", "b"));
  EXPECT_FALSE(fs_->DeleteDir("/db", IOOptions(), nullptr).ok());
  ISOZONE_EXPECT_OK(fs_->DeleteFile("/db/a", IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(fs_->DeleteFile("/db/b", IOOptions(), nullptr));
  EXPECT_THAT(Children("/db"), IsEmpty());
  ISOZONE_EXPECT_OK(fs_->DeleteDir("/db", IOOptions(), nullptr));
  EXPECT_TRUE(Exists("/db").IsNotFound());
}

TEST_F(NamesTest, MissingParentsOfADatabaseAreMade) {
  ISOZONE_ASSERT_OK(fs_->CreateDirIfMissing("/var/lib/db", IOOptions(), nullptr));
  bool is_directory = false;
  ISOZONE_ASSERT_OK(fs_->IsDirectory("/var/lib", IOOptions(), &is_directory, nullptr));
  EXPECT_TRUE(is_directory);
  WriteFile(*fs_, "/var/lib/db/file", "x");
  ISOZONE_ASSERT_OK(fs_->IsDirectory("/var/lib/db/file", IOOptions(), &is_directory, nullptr));
  EXPECT_FALSE(is_directory);
  EXPECT_FALSE(fs_->CreateDirIfMissing("/var/lib/db/file", IOOptions(), nullptr).ok());
}

TEST_F(NamesTest, PathsMayBeRelativeAndRedundant) {
  ISOZONE_ASSERT_OK(fs_->CreateDirIfMissing("db", IOOptions(), nullptr));
  WriteFile(*fs_, "db//x", "1");
  ISOZONE_EXPECT_OK(Exists("/db/x"));
  ISOZONE_EXPECT_OK(Exists("./db/./x"));
  ISOZONE_EXPECT_OK(Exists("/db/../db/x"));
  std::string absolute;
  ISOZONE_ASSERT_OK(fs_->GetAbsolutePath("db", IOOptions(), &absolute, nullptr));
  EXPECT_EQ(absolute, "/db");
}

TEST_F(NamesTest, AttributesOfChildrenHaveSizes) {
  ISOZONE_ASSERT_OK(fs_->CreateDir("/db", IOOptions(), nullptr));
  WriteFile(*fs_, "/db/one", "1");
  WriteFile(*fs_, "/db/many", std::string(12345, 'x'));
  std::vector<rocksdb::FileAttributes> attributes;
  ISOZONE_ASSERT_OK(fs_->GetChildrenFileAttributes("/db", IOOptions(), &attributes, nullptr));
  std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  ASSERT_EQ(attributes.size(), 2U);
  EXPECT_EQ(attributes[0].name, "many");
  EXPECT_EQ(attributes[0].size_bytes, 12345U);
  EXPECT_EQ(attributes[1].name, "one");
  EXPECT_EQ(attributes[1].size_bytes, 1U);
}

TEST_F(NamesTest, FilesHaveAModificationTime) {
  // Not std::time: its coarser clock can be a second behind.
  const auto now = [] {
    return static_cast<uint64_t>(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  };
  const uint64_t before = now();
  WriteFile(*fs_, "/x", "1");
  uint64_t modified = 0;
  ISOZONE_ASSERT_OK(fs_->GetFileModificationTime("/x", IOOptions(), &modified, nullptr));
  EXPECT_GE(modified, before);
  EXPECT_LE(modified, now());
}

TEST_F(NamesTest, LinksCountAndShareContent) {
  WriteFile(*fs_, "/a", "content");
  EXPECT_EQ(Links("/a"), 1U);
  ISOZONE_ASSERT_OK(fs_->LinkFile("/a", "/b", IOOptions(), nullptr));
  EXPECT_EQ(Links("/a"), 2U);
  EXPECT_EQ(ReadFile(*fs_, "/b"), "content");
  bool same = false;
  ISOZONE_ASSERT_OK(fs_->AreFilesSame("/a", "/b", IOOptions(), &same, nullptr));
  EXPECT_TRUE(same);
  EXPECT_FALSE(fs_->LinkFile("/a", "/b", IOOptions(), nullptr).ok());

  ISOZONE_EXPECT_OK(fs_->DeleteFile("/a", IOOptions(), nullptr));
  EXPECT_EQ(Links("/b"), 1U);
  EXPECT_EQ(ReadFile(*fs_, "/b"), "content");
  WriteFile(*fs_, "/a", "content");
  ISOZONE_ASSERT_OK(fs_->AreFilesSame("/a", "/b", IOOptions(), &same, nullptr));
  EXPECT_FALSE(same);
}

TEST_F(NamesTest, RenameReplacesAFileThatIsOpen) {
  WriteFile(*fs_, "/current", "old");
  std::unique_ptr<rocksdb::FSRandomAccessFile> old;
  ISOZONE_ASSERT_OK(fs_->NewRandomAccessFile("/current", FileOptions(), &old, nullptr));
  WriteFile(*fs_, "/next", "new");
  ISOZONE_ASSERT_OK(fs_->RenameFile("/next", "/current", IOOptions(), nullptr));
  EXPECT_TRUE(Exists("/next").IsNotFound());
  EXPECT_EQ(ReadFile(*fs_, "/current"), "new");
  char scratch[3];
  rocksdb::Slice read;
  ISOZONE_ASSERT_OK(old->Read(0, 3, IOOptions(), &read, scratch, nullptr));
  EXPECT_EQ(read.ToString(), "old");
}

TEST_F(NamesTest, RenameMovesDirectories) {
  ISOZONE_ASSERT_OK(fs_->CreateDir("/checkpoint.tmp", IOOptions(), nullptr));
  WriteFile(*fs_, "/checkpoint.tmp/x", "1");
  ISOZONE_ASSERT_OK(fs_->RenameFile("/checkpoint.tmp", "/checkpoint", IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/checkpoint/x"), "1");
  EXPECT_TRUE(Exists("/checkpoint.tmp").IsNotFound());
}

TEST_F(NamesTest, RenameKeepsTheWriterOfTheFile) {
  std::unique_ptr<rocksdb::FSWritableFile> log;
  ISOZONE_ASSERT_OK(fs_->NewWritableFile("/LOG", FileOptions(), &log, nullptr));
  ISOZONE_ASSERT_OK(log->Append("before ", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs_->RenameFile("/LOG", "/LOG.old.1", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(log->Append("after", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(log->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/LOG.old.1"), "before after");
}

TEST_F(NamesTest, LocksExcludeWithinTheProcessAndLeaveAFile) {
  const std::shared_ptr<rocksdb::FileSystem> second = Open();
  rocksdb::FileLock* lock = nullptr;
  ISOZONE_ASSERT_OK(fs_->LockFile("/LOCK", IOOptions(), &lock, nullptr));
  rocksdb::FileLock* other = nullptr;
  EXPECT_FALSE(second->LockFile("//LOCK", IOOptions(), &other, nullptr).ok());
  EXPECT_EQ(other, nullptr);
  ISOZONE_EXPECT_OK(Exists("/LOCK"));
  ISOZONE_ASSERT_OK(fs_->UnlockFile(lock, IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(Exists("/LOCK"));
  ISOZONE_ASSERT_OK(second->LockFile("/LOCK", IOOptions(), &other, nullptr));
  ISOZONE_ASSERT_OK(second->UnlockFile(other, IOOptions(), nullptr));
}

TEST_F(NamesTest, ALockThatCannotBeMadeIsNotHeld) {
  rocksdb::FileLock* lock = nullptr;
  EXPECT_FALSE(fs_->LockFile("/db/LOCK", IOOptions(), &lock, nullptr).ok());
  ISOZONE_ASSERT_OK(fs_->CreateDir("/db", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs_->LockFile("/db/LOCK", IOOptions(), &lock, nullptr));
  ISOZONE_ASSERT_OK(fs_->UnlockFile(lock, IOOptions(), nullptr));
}

TEST_F(NamesTest, TheTestDirectoryExists) {
  std::string path;
  ISOZONE_ASSERT_OK(fs_->GetTestDirectory(IOOptions(), &path, nullptr));
  ISOZONE_EXPECT_OK(Exists(path));
}

TEST_F(NamesTest, FreeSpaceShrinksAsDataIsWritten) {
  uint64_t before = 0;
  ISOZONE_ASSERT_OK(fs_->GetFreeSpace("/", IOOptions(), &before, nullptr));
  EXPECT_GT(before, 0U);
  WriteFile(*fs_, "/000001.sst", Bytes(20 << 20, 1));
  uint64_t after = 0;
  ISOZONE_ASSERT_OK(fs_->GetFreeSpace("/", IOOptions(), &after, nullptr));
  EXPECT_LE(after + (20 << 20), before);
}

TEST_F(NamesTest, DirectorySyncMakesNamesDurable) {
  ISOZONE_ASSERT_OK(fs_->CreateDir("/db", IOOptions(), nullptr));
  WriteFile(*fs_, "/db/tmp", "1");
  ISOZONE_ASSERT_OK(fs_->RenameFile("/db/tmp", "/db/CURRENT", IOOptions(), nullptr));
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ISOZONE_ASSERT_OK(fs_->NewDirectory("/db", IOOptions(), &directory, nullptr));
  ISOZONE_EXPECT_OK(directory->Fsync(IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(directory->FsyncWithDirOptions(IOOptions(), nullptr, rocksdb::DirFsyncOptions("CURRENT")));
  ISOZONE_EXPECT_OK(directory->Close(IOOptions(), nullptr));
  directory.reset();
  fs_.reset();
  fs_ = Open();
  EXPECT_EQ(ReadFile(*fs_, "/db/CURRENT"), "1");
}

TEST_F(NamesTest, UniqueIdsTellFilesApart) {
  const auto id_of = [&](const std::string& name) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    ISOZONE_EXPECT_OK(fs_->NewRandomAccessFile(name, FileOptions(), &file, nullptr));
    char id[64];
    return std::string(id, file->GetUniqueId(id, sizeof(id)));
  };
  WriteFile(*fs_, "/a", "1");
  WriteFile(*fs_, "/b", "1");
  const std::string a = id_of("/a");
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(a, id_of("/a"));
  EXPECT_NE(a, id_of("/b"));
  ISOZONE_ASSERT_OK(fs_->RenameFile("/a", "/c", IOOptions(), nullptr));
  EXPECT_EQ(a, id_of("/c"));
}

}  // namespace
}  // namespace isozone
