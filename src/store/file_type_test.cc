#include "store/file_type.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(FileTypeTest, NamesTellTypeAndKind) {
  struct Case {
    const char* path;
    FileType type;
    FileKind kind;
  };
  const Case cases[] = {
      {"/db/000012.log", FileType::kWal, FileKind::kLog},
      {"/db/archive/000012.log", FileType::kWal, FileKind::kLog},
      {"000012.log", FileType::kWal, FileKind::kLog},
      {"/db/MANIFEST-000005", FileType::kManifest, FileKind::kLog},
      {"/db/CURRENT", FileType::kCurrent, FileKind::kSmall},
      {"/db/000007.sst", FileType::kTable, FileKind::kData},
      {"/db/000007.ldb", FileType::kTable, FileKind::kData},
      {"/db/blob_dir/000009.blob", FileType::kTable, FileKind::kData},
      {"/db/IDENTITY", FileType::kSmall, FileKind::kSmall},
      {"/db/LOCK", FileType::kSmall, FileKind::kSmall},
      {"/db/LOG", FileType::kSmall, FileKind::kSmall},
      {"/db/LOG.old.1663344010", FileType::kSmall, FileKind::kSmall},
      {"/db/OPTIONS-000008", FileType::kSmall, FileKind::kSmall},
      {"/db/000008.dbtmp", FileType::kSmall, FileKind::kSmall},
      {"/backup/meta/1", FileType::kOther, FileKind::kData},
      {"/backup/shared_checksum/000007_s1_42.sst", FileType::kOther, FileKind::kData},
      {"/import/people.sst", FileType::kOther, FileKind::kData},
      {"/db/.log", FileType::kOther, FileKind::kData},
      {"/db.log/file", FileType::kOther, FileKind::kData},
      {"", FileType::kOther, FileKind::kData},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FileTypeOf(c.path), c.type) << c.path;
    EXPECT_EQ(FileKindOf(FileTypeOf(c.path)), c.kind) << c.path;
  }
}

TEST(FileTypeTest, InfoLogsAreKnownByTheirNames) {
  for (const char* path : {"/db/LOG", "/db/LOG.old.1663344010", "/logs/db_LOG"}) EXPECT_TRUE(IsInfoLog(path)) << path;
  for (const char* path : {"/db/LOCK", "/db/000001.log", "/db/LOGS", "/LOG/000001.sst"}) {
    EXPECT_FALSE(IsInfoLog(path)) << path;
  }
}

}  // namespace
}  // namespace isozone
