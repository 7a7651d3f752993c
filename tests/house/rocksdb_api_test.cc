// That the build links the RocksDB whose headers it compiled against, whichever cmake/RocksDB.cmake was given, and that
// what the adapter relies on works there with no code of Isozone's involved: deriving from FileSystem and
// EventListener, and finding a FileSystem by URI.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>
#include <rocksdb/utilities/object_registry.h>
#include <rocksdb/version.h>

namespace {

class CountingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "CountingFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    ++files_created;
    return FileSystemWrapper::NewWritableFile(name, options, file, debug);
  }

  int files_created = 0;
};

class FlushCounter : public rocksdb::EventListener {
 public:
  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override { ++flushes; }

  int flushes = 0;
};

TEST(RocksDbApi, HeadersAndLibraryAreOfOneVersion) {
  EXPECT_EQ(rocksdb::GetRocksVersionAsString(), ISOZONE_ROCKSDB_VERSION);
  EXPECT_EQ(ROCKSDB_MAJOR, std::stoi(ISOZONE_ROCKSDB_VERSION));
}

TEST(RocksDbApi, DatabaseRunsOnAFileSystemFoundByUri) {
  CountingFileSystem* file_system = nullptr;
  rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::FileSystem>(
      rocksdb::ObjectLibrary::PatternEntry("counting", false).AddSeparator("://", false),
      [&](const std::string& /*uri*/, std::unique_ptr<rocksdb::FileSystem>* guard, std::string* /*error*/) {
        file_system = new CountingFileSystem(rocksdb::FileSystem::Default());
        guard->reset(file_system);
        return guard->get();
      });
  rocksdb::Env* env = nullptr;
  std::shared_ptr<rocksdb::Env> env_guard;
  ASSERT_TRUE(rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), "", "counting://", &env, &env_guard).ok());
  ASSERT_NE(file_system, nullptr);

  const std::string path = testing::TempDir() + "isozone_rocksdb_api_test." + std::to_string(getpid());
  const auto listener = std::make_shared<FlushCounter>();
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.listeners.push_back(listener);
#if ROCKSDB_MAJOR >= 10  // the raw pointer is deprecated since 9.11
  std::unique_ptr<rocksdb::DB> db;
  ASSERT_TRUE(rocksdb::DB::Open(options, path, &db).ok());
#else
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, path, &raw).ok());
  std::unique_ptr<rocksdb::DB> db(raw);
#endif
  EXPECT_TRUE(db->Put(rocksdb::WriteOptions(), "key", "value").ok());
  EXPECT_TRUE(db->Flush(rocksdb::FlushOptions()).ok());
  std::string value;
  EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "key", &value).ok());
  EXPECT_EQ(value, "value");
  db.reset();
  EXPECT_EQ(listener->flushes, 1);
  EXPECT_GT(file_system->files_created, 0);
  std::filesystem::remove_all(path);
}

}  // namespace
