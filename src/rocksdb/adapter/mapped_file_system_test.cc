#include "rocksdb/adapter/mapped_file_system.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "testing/assert_ok.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;

std::vector<std::string> g_opened;  // the URIs of the devices that were mounted, in order

// A device in memory for each URI, "isozone://gone" excepted.
Result<std::shared_ptr<rocksdb::FileSystem>> OpenInMemory(const std::string& uri) {
  if (uri == "isozone://gone") return Status::NotFound("no such device");
  g_opened.push_back(uri);
  static rocksdb::Env* const env = rocksdb::NewMemEnv(rocksdb::Env::Default());
  return env->GetFileSystem();
}

class ScratchDirectory {
 public:
  ScratchDirectory() : path_(::testing::TempDir() + "mapped-XXXXXX") { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MappedFileSystemTest : public ::testing::Test {
 protected:
  MappedFileSystemTest() { g_opened.clear(); }

  const std::unique_ptr<rocksdb::Env> local_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  MappedFileSystem fs_{{{"/app", "/app", "isozone://one"}, {"/lost", "/lost", "isozone://gone"}},
                       local_->GetFileSystem(),
                       &OpenInMemory};

  void Write(const std::string& name, const std::string& content) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ISOZONE_ASSERT_OK(fs_.NewWritableFile(name, FileOptions(), &file, nullptr));
    ISOZONE_ASSERT_OK(file->Append(content, IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  }
  bool IsLocal(const std::string& name) { return local_->GetFileSystem()->FileExists(name, IOOptions(), nullptr).ok(); }
  bool Exists(const std::string& name) { return fs_.FileExists(name, IOOptions(), nullptr).ok(); }
};

TEST_F(MappedFileSystemTest, FilesLieOnTheDeviceThatTheirDirectoryIsMappedTo) {
  Write("/application/file", "local");
  EXPECT_TRUE(IsLocal("/application/file"));
  EXPECT_TRUE(g_opened.empty());  // nobody has used the device
  ISOZONE_ASSERT_OK(fs_.CreateDirIfMissing("/app/db", IOOptions(), nullptr));
  Write("/app/db/file", "on the device");
  Write("/app/./db//../db/other", "on the device, too");
  EXPECT_FALSE(IsLocal("/app/db/file"));
  EXPECT_TRUE(IsLocal("/app/db"));  // for the other files of a program
  EXPECT_EQ(g_opened, std::vector<std::string>{"isozone://one"});
  std::vector<std::string> names;
  ISOZONE_ASSERT_OK(fs_.GetChildren("/app/db", IOOptions(), &names, nullptr));
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"file", "other"}));
  ISOZONE_ASSERT_OK(fs_.DeleteFile("/app/db/file", IOOptions(), nullptr));
  EXPECT_FALSE(Exists("/app/db/file"));
}

TEST_F(MappedFileSystemTest, NothingCrossesBetweenDevices) {
  Write("/app/file", "on the device");
  EXPECT_TRUE(fs_.LinkFile("/app/file", "/elsewhere", IOOptions(), nullptr).IsNotSupported());
  const rocksdb::IOStatus renamed = fs_.RenameFile("/app/file", "/elsewhere", IOOptions(), nullptr);
  EXPECT_NE(renamed.ToString().find("/app/file cannot be renamed to /elsewhere"), std::string::npos);
  bool same = true;
  ISOZONE_ASSERT_OK(fs_.AreFilesSame("/app/file", "/elsewhere", IOOptions(), &same, nullptr));
  EXPECT_FALSE(same);
  ISOZONE_ASSERT_OK(fs_.RenameFile("/app/file", "/app/renamed", IOOptions(), nullptr));
  EXPECT_TRUE(Exists("/app/renamed"));
}

#if ISOZONE_ROCKSDB_HAS_SYNC_FILE
TEST_F(MappedFileSystemTest, AFileIsSyncedWhereItLies) {
  Write("/app/file", "on the device");
  ISOZONE_EXPECT_OK(fs_.SyncFile("/app/file", FileOptions(), IOOptions(), /*use_fsync=*/false, nullptr));
  EXPECT_FALSE(IsLocal("/app/file")) << "the local file system would have made it anew";
}
#endif

TEST_F(MappedFileSystemTest, LocksGoBackToWhereTheyCameFrom) {
  for (const std::string name : {"/app/LOCK", "/LOCK"}) {
    rocksdb::FileLock* lock = nullptr;
    ISOZONE_ASSERT_OK(fs_.LockFile(name, IOOptions(), &lock, nullptr));
    rocksdb::FileLock* second = nullptr;
    EXPECT_FALSE(fs_.LockFile(name, IOOptions(), &second, nullptr).ok());
    ISOZONE_ASSERT_OK(fs_.UnlockFile(lock, IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(fs_.LockFile(name, IOOptions(), &lock, nullptr));
    ISOZONE_ASSERT_OK(fs_.UnlockFile(lock, IOOptions(), nullptr));
  }
}

TEST_F(MappedFileSystemTest, ADeviceThatCannotBeMountedIsAnErrorOfEachUse) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const rocksdb::IOStatus status = fs_.NewWritableFile("/lost/file", FileOptions(), &file, nullptr);
    EXPECT_NE(status.ToString().find("no such device"), std::string::npos) << status.ToString();
  }
  EXPECT_FALSE(IsLocal("/lost/file"));
}

TEST_F(MappedFileSystemTest, AnAsynchronousReadOfALocalFileIsDoneAtOnce) {
  Write("/file", "content");
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ISOZONE_ASSERT_OK(fs_.NewRandomAccessFile("/file", FileOptions(), &file, nullptr));
  char scratch[8];
  rocksdb::FSReadRequest request;
  request.offset = 0;
  request.len = 7;
  request.scratch = scratch;
  void* handle = nullptr;
  rocksdb::IOHandleDeleter deleter;
  std::string read;
  ISOZONE_ASSERT_OK(file->ReadAsync(
      request, IOOptions(), [&read](const rocksdb::FSReadRequest& done, void*) { read = done.result.ToString(); },
      nullptr, &handle, &deleter, nullptr));
  EXPECT_EQ(read, "content");
  EXPECT_EQ(handle, nullptr);
}

TEST(DirectoryMappingTest, ReadsOneDirectoryALine) {
  const auto mappings =
      DirectoryMapping::Parse("/var/lib/app/=isozone://emu:/a=b.img?x=y\n/b/../c=isozone://dev:/dev/z");
  ASSERT_TRUE(mappings.ok());
  ASSERT_EQ(mappings->size(), 2U);
  EXPECT_EQ(mappings->at(0).directory, "/var/lib/app");
  EXPECT_EQ(mappings->at(0).uri, "isozone://emu:/a=b.img?x=y");
  EXPECT_EQ(mappings->at(1).directory, "/c");
}

TEST(DirectoryMappingTest, AFileIsFoundThroughEachNameOfItsDirectory) {
  const ScratchDirectory directory;
  const std::string& scratch = directory.path();
  std::filesystem::create_directories(scratch + "/real/app");
  std::filesystem::create_directory_symlink("real", scratch + "/link");
  for (const std::string mapped : {"/real/app", "/link/app"}) {
    const auto mappings = DirectoryMapping::Parse(scratch + mapped + "=isozone://one");
    ASSERT_TRUE(mappings.ok());
    for (const std::string used : {"/real/app/sought", "/link/app/sought"}) {
      g_opened.clear();
      const std::unique_ptr<rocksdb::Env> local(rocksdb::NewMemEnv(rocksdb::Env::Default()));
      MappedFileSystem fs(*mappings, local->GetFileSystem(), &OpenInMemory);
      EXPECT_TRUE(fs.FileExists(scratch + used, IOOptions(), nullptr).IsNotFound());
      EXPECT_EQ(g_opened, std::vector<std::string>{"isozone://one"}) << used << " with " << mapped;
    }
  }
  const auto twice = DirectoryMapping::Parse(scratch + "/real/app=isozone://a\n" + scratch + "/link/app=isozone://b");
  EXPECT_NE(twice.status().message().find("lie in each other"), std::string::npos);
}

TEST(DirectoryMappingTest, ADirectoryIsRenamedInBothPlacesAndAFileOnTheDevice) {
  const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch.path() + "/app");
  const auto mappings = DirectoryMapping::Parse(scratch.path() + "/app=isozone://one");
  ASSERT_TRUE(mappings.ok());
  MappedFileSystem fs(*mappings, rocksdb::FileSystem::Default(), &OpenInMemory);
  const auto is_local = [&](const std::string& name) { return std::filesystem::exists(scratch.path() + name); };
  const auto rename = [&](const std::string& from, const std::string& to) {
    return fs.RenameFile(scratch.path() + from, scratch.path() + to, IOOptions(), nullptr);
  };
  ISOZONE_ASSERT_OK(fs.CreateDirIfMissing(scratch.path() + "/app/new", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(rename("/app/new", "/app/snapshot"));
  EXPECT_TRUE(is_local("/app/snapshot"));
  EXPECT_FALSE(is_local("/app/new"));

  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs.NewWritableFile(scratch.path() + "/app/snapshot/a", FileOptions(), &file, nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  std::ofstream(scratch.path() + "/app/snapshot/a") << "made without RocksDB";
  ISOZONE_ASSERT_OK(rename("/app/snapshot/a", "/app/snapshot/b"));
  EXPECT_TRUE(is_local("/app/snapshot/a"));
  EXPECT_FALSE(is_local("/app/snapshot/b"));
}

TEST(DirectoryMappingTest, SaysWhatIsWrong) {
  const auto message = [](std::string_view lines) {
    return std::string(DirectoryMapping::Parse(lines).status().message());
  };
  EXPECT_NE(message("app=isozone://emu:/a").find("maps no directory"), std::string::npos);
  EXPECT_NE(message("/app=emu:/a").find("maps no directory"), std::string::npos);
  EXPECT_NE(message("/=isozone://emu:/a").find("root"), std::string::npos);
  EXPECT_NE(message("/a=isozone://emu:/a\n/a/b=isozone://emu:/b").find("lie in each other"), std::string::npos);
  EXPECT_NE(message("").find("no directory"), std::string::npos);
}

}  // namespace
}  // namespace isozone
