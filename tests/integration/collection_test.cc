// Garbage collection as a running database asks for it, and the listener and partitioner that RocksDB makes by name.

#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_partitioner.h>

#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::IOOptions;
using ::testing::HasSubstr;

constexpr size_t kFileSize = 1 << 20;
constexpr int kFiles = 24;

class CollectionTest : public ScratchDevice {
 protected:
  static std::string Name(int i) { return "/import/file" + std::to_string(i); }
  static nlohmann::json Stats(const rocksdb::FileSystem& fs) {
    std::string json;
    ISOZONE_EXPECT_OK(GetStats(fs, &json));
    return nlohmann::json::parse(json);
  }
  static uint64_t Dead(const rocksdb::FileSystem& fs) { return Stats(fs).at("space").at("dead_bytes"); }
  // Zones in which every second file has been deleted.
  static void MakeGarbage(rocksdb::FileSystem& fs) {
    ISOZONE_ASSERT_OK(fs.CreateDirIfMissing("/import", IOOptions(), nullptr));
    for (int i = 0; i < kFiles; ++i) WriteFile(fs, Name(i), Bytes(kFileSize, i));
    for (int i = 0; i < kFiles; i += 2) ISOZONE_ASSERT_OK(fs.DeleteFile(Name(i), IOOptions(), nullptr));
  }
  static void CheckFiles(rocksdb::FileSystem& fs) {
    for (int i = 1; i < kFiles; i += 2) EXPECT_EQ(ReadFile(fs, Name(i)), Bytes(kFileSize, i)) << Name(i);
  }
};

TEST_F(CollectionTest, CollectsWhenAsked) {
  const auto fs = Open();
  MakeGarbage(*fs);
  const uint64_t dead = Dead(*fs);
  ASSERT_GT(dead, 4 * kFileSize);
  uint64_t calls = 0;
  uint64_t copied = 0;
  uint64_t to_copy = 0;
  ISOZONE_ASSERT_OK(CollectGarbage(*fs, 100, [&](uint64_t done, uint64_t all) {
    ++calls;
    copied = done;
    to_copy = all;
    return true;
  }));
  EXPECT_GT(calls, 0U);
  EXPECT_GT(copied, 0U);
  EXPECT_LE(copied, to_copy);
  const nlohmann::json gc = Stats(*fs).at("gc");
  EXPECT_EQ(gc.at("scheme"), "isozone");
  EXPECT_EQ(gc.at("rounds"), 1);
  EXPECT_GT(gc.at("zones"), 0);
  EXPECT_EQ(gc.at("failed"), 0);
  EXPECT_EQ(gc.at("bytes_copied"), copied);
  EXPECT_GE(gc.at("bytes_read"), copied);
  EXPECT_GT(gc.at("bytes_reclaimed"), 4 * kFileSize);
  for (const char* none : {"skipped", "bytes_dropped", "read_errors", "mismatches", "space_waits", "urgency"}) {
    EXPECT_EQ(gc.at(none), 0) << none;
  }
  EXPECT_EQ(Stats(*fs).at("mixed_classes"), 0);
  CheckFiles(*fs);
}

TEST_F(CollectionTest, StopsWhenEnoughIsFreeOrItIsTold) {
  const auto fs = Open();
  MakeGarbage(*fs);
  ISOZONE_ASSERT_OK(CollectGarbage(*fs, 50));  // most of the device is free
  EXPECT_EQ(Stats(*fs).at("gc").at("rounds"), 0);
  int calls = 0;
  ISOZONE_ASSERT_OK(CollectGarbage(*fs, 100, [&](uint64_t, uint64_t) { return ++calls < 1; }));
  EXPECT_EQ(calls, 1);
  CheckFiles(*fs);
}

TEST_F(CollectionTest, TakesAnotherSchemeWhileItRuns) {
  const auto fs = Open("policy=zenfs");
  EXPECT_EQ(Stats(*fs).at("gc").at("scheme"), "none");
  ISOZONE_ASSERT_OK(SetGarbageCollection(*fs, "lsm-zgc"));
  EXPECT_EQ(Stats(*fs).at("gc").at("scheme"), "lsm-zgc");
  ISOZONE_ASSERT_OK(SetGarbageCollection(*fs, "gc=lifetime&gc_start=25&gc_memory=8M"));
  EXPECT_EQ(Stats(*fs).at("gc").at("scheme"), "lifetime");
  ISOZONE_ASSERT_OK(SetGarbageCollection(*fs, "gc_start=20"));  // of the scheme that it was mounted with
  EXPECT_EQ(Stats(*fs).at("gc").at("scheme"), "none");
}

// By itself: the new scheme sees more than enough to do on a device that is far from full.
TEST_F(CollectionTest, ASchemeThatIsSetBeginsByItself) {
  const auto fs = Open("gc=none");
  MakeGarbage(*fs);
  ISOZONE_ASSERT_OK(SetGarbageCollection(*fs, "gc=lsm-zgc&gc_start=90"));
  const uint64_t free = Stats(*fs).at("space").at("free_bytes");
  const uint64_t capacity = Stats(*fs).at("space").at("capacity_bytes");
  ASSERT_LT(free * 100, capacity * 99);
  // Fill until less is free than where it begins.
  for (int i = 0; Stats(*fs).at("space").at("free_bytes").get<uint64_t>() * 100 > capacity * 80; ++i) {
    WriteFile(*fs, "/import/more" + std::to_string(i), Bytes(4 * kFileSize, i));
  }
  while (Stats(*fs).at("gc").at("zones") == 0) std::this_thread::yield();  // the test's time limit is the only clock
  CheckFiles(*fs);
}

TEST_F(CollectionTest, ErrorsSayWhatIsKnown) {
  const auto fs = Open();
  const struct {
    const char* options;
    const char* says;
  } cases[] = {{"wishful", "lsm-zgc"},       {"", "lsm-zgc"},
               {"gc=wishful", "lifetime"},   {"gc_start=99", "gc_start"},
               {"gc_strat=20", "gc_start"},  {"gc=lifetime&policy=zenfs", "policy"},
               {"gc_memory=1K", "gc_memory"}};
  for (const auto& c : cases) {
    const rocksdb::Status status = SetGarbageCollection(*fs, c.options);
    EXPECT_TRUE(status.IsInvalidArgument()) << c.options << ": " << status.ToString();
    EXPECT_THAT(status.ToString(), HasSubstr(c.says)) << c.options;
  }
  EXPECT_EQ(Stats(*fs).at("gc").at("scheme"), "isozone");
  EXPECT_TRUE(CollectGarbage(*fs, 101).IsInvalidArgument());
  EXPECT_TRUE(CollectGarbage(*fs, -1).IsInvalidArgument());
  EXPECT_TRUE(CollectGarbage(*rocksdb::FileSystem::Default()).IsInvalidArgument());
  EXPECT_TRUE(SetGarbageCollection(*rocksdb::FileSystem::Default(), "lifetime").IsInvalidArgument());
}

TEST_F(CollectionTest, AReadOnlyMountCollectsNothing) {
  WriteFile(*Open(), "/x", "1");
  const auto fs = Open("read_only=on");
  EXPECT_THAT(CollectGarbage(*fs).ToString(), HasSubstr("read-only"));
  EXPECT_THAT(SetGarbageCollection(*fs, "lifetime").ToString(), HasSubstr("read-only"));
}

TEST_F(CollectionTest, ADatabaseGoesOnWhileItIsCollected) {
  const auto env = OpenEnv();
  rocksdb::FileSystem& fs = *env->GetFileSystem();
  rocksdb::Options base;
  base.env = env.get();
  base.create_if_missing = true;
  base.write_buffer_size = 256 << 10;
  rocksdb::Options options;
  ISOZONE_ASSERT_OK(rocksdb::GetOptionsFromString(rocksdb::ConfigOptions(), base,
                                                  "listeners={isozone};sst_partitioner_factory=isozone", &options));
  ASSERT_EQ(options.listeners.size(), 1U);
  EXPECT_STREQ(options.listeners.front()->Name(), "isozone");
  ASSERT_NE(options.sst_partitioner_factory, nullptr);
  EXPECT_STREQ(options.sst_partitioner_factory->Name(), "isozone");
  std::unique_ptr<rocksdb::DB> db;
  ISOZONE_ASSERT_OK(OpenDb(options, "/db", &db));
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 4000; ++i) ISOZONE_ASSERT_OK(db->Put({}, Key(i), Bytes(400, i + round)));
    ISOZONE_ASSERT_OK(CollectGarbage(fs));
  }
  EXPECT_GT(Stats(fs).at("gc").at("zones"), 0);
  for (uint64_t i = 0; i < 4000; ++i) {
    std::string value;
    ISOZONE_ASSERT_OK(db->Get({}, Key(i), &value));
    ASSERT_EQ(value, Bytes(400, i + 3));
  }
  ISOZONE_EXPECT_OK(db->VerifyChecksum());
}

}  // namespace
}  // namespace isozone
