#include "mount/new_file.h"

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
