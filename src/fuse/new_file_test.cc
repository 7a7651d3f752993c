#include "fuse/new_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(NewFileTest, ANameThatSaysItAllDecidesWhateverTheThread) {
  for (const ThreadJob job : {ThreadJob::kUnknown, ThreadJob::kFlush, ThreadJob::kCompaction}) {
    const CreateOptions wal = OptionsOfNew("000012.log", job);
    EXPECT_EQ(wal.kind, FileKind::kLog);
    EXPECT_EQ(wal.io_class, IoClass::kWal);
    EXPECT_EQ(wal.lifetime, Lifetime::kShort);
    const CreateOptions manifest = OptionsOfNew("MANIFEST-000005", job);
    EXPECT_EQ(manifest.kind, FileKind::kLog);
    EXPECT_EQ(manifest.io_class, IoClass::kMetadata);
    EXPECT_EQ(manifest.lifetime, Lifetime::kLong);
    const CreateOptions other = OptionsOfNew("pages.db", job);
    EXPECT_EQ(other.kind, FileKind::kData);
    EXPECT_EQ(other.io_class, IoClass::kOther);
    EXPECT_EQ(other.lifetime, Lifetime::kNotSet);
  }
}

TEST(NewFileTest, TheThreadTellsWhetherATableIsFlushedOrCompacted) {
  const CreateOptions flushed = OptionsOfNew("000007.sst", JobOf("rocksdb:high"));
  EXPECT_EQ(flushed.io_class, IoClass::kFlush);
  EXPECT_EQ(flushed.lifetime, Lifetime::kMedium);
  for (const char* name : {"rocksdb:low", "rocksdb:bottom"}) {
    const CreateOptions compacted = OptionsOfNew("000007.sst", JobOf(name));
    EXPECT_EQ(compacted.io_class, IoClass::kCompactionWrite) << name;
    EXPECT_EQ(compacted.lifetime, Lifetime::kLong) << name;
  }
  const CreateOptions imported = OptionsOfNew("000007.sst", JobOf("mariadbd"));
  EXPECT_EQ(imported.io_class, IoClass::kOther);
  EXPECT_EQ(imported.lifetime, Lifetime::kNotSet);
}

TEST(NewFileTest, AHintComesBehindTheNameAndBeforeTheThread) {
  for (const char* name : {"000012.log", "MANIFEST-000005", "CURRENT", "OPTIONS-000007", "LOG", "pages.db"}) {
    EXPECT_FALSE(MayHaveHint(name)) << name;
  }
  for (const char* name : {"000007.sst", "000007.ldb", "000007.blob"}) {
    EXPECT_TRUE(MayHaveHint(name)) << name;
    for (const ThreadJob job : {ThreadJob::kUnknown, ThreadJob::kFlush, ThreadJob::kCompaction}) {
      const Lifetime by_thread = OptionsOfNew(name, job).lifetime;
      EXPECT_EQ(LifetimeByHint(RWH_WRITE_LIFE_SHORT).value_or(by_thread), Lifetime::kShort);
      EXPECT_EQ(LifetimeByHint(RWH_WRITE_LIFE_MEDIUM).value_or(by_thread), Lifetime::kMedium);
      EXPECT_EQ(LifetimeByHint(RWH_WRITE_LIFE_LONG).value_or(by_thread), Lifetime::kLong);
      EXPECT_EQ(LifetimeByHint(RWH_WRITE_LIFE_EXTREME).value_or(by_thread), Lifetime::kExtreme);
      // These say nothing; the first may mean something to a kernel to come.
      for (const uint64_t hint :
           {uint64_t{6}, UINT64_MAX, uint64_t{RWH_WRITE_LIFE_NOT_SET}, uint64_t{RWH_WRITE_LIFE_NONE}}) {
        EXPECT_EQ(LifetimeByHint(hint).value_or(by_thread), by_thread);
      }
    }
  }
}

TEST(NewFileTest, TheNameOfAThreadIsThatOfTheKernel) {
  char before[16] = {};
  ASSERT_EQ(::pthread_getname_np(::pthread_self(), before, sizeof(before)), 0);
  ASSERT_EQ(::pthread_setname_np(::pthread_self(), "rocksdb:low0"), 0);
  EXPECT_EQ(ThreadName(::gettid()), "rocksdb:low0");
  EXPECT_EQ(JobOf(ThreadName(::gettid())), ThreadJob::kCompaction);
  ::pthread_setname_np(::pthread_self(), before);
  EXPECT_EQ(ThreadName(0), "");
  EXPECT_EQ(ThreadName(-1), "");
}

}  // namespace
}  // namespace isozone
