#include "rocksdb/adapter/file_class.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

using rocksdb::Env;

TEST(FileClassTest, WhatAFileIsSaysHowLongItLivesAndOnlyThenTheHint) {
  for (const auto hint : {Env::WLTH_NOT_SET, Env::WLTH_NONE, Env::WLTH_SHORT, Env::WLTH_EXTREME}) {
    EXPECT_EQ(LifetimeOf(FileType::kWal, hint), Lifetime::kShort);
    EXPECT_EQ(LifetimeOf(FileType::kManifest, hint), Lifetime::kLong);
    EXPECT_EQ(LifetimeOf(FileType::kCurrent, hint), Lifetime::kNone);
    EXPECT_EQ(LifetimeOf(FileType::kSmall, hint), Lifetime::kNone);
  }
  for (const FileType type : {FileType::kTable, FileType::kOther}) {
    EXPECT_EQ(LifetimeOf(type, Env::WLTH_NOT_SET), Lifetime::kNotSet);
    EXPECT_EQ(LifetimeOf(type, Env::WLTH_NONE), Lifetime::kNotSet) << "else it would share zones with the info log";
    EXPECT_EQ(LifetimeOf(type, Env::WLTH_SHORT), Lifetime::kShort);
    EXPECT_EQ(LifetimeOf(type, Env::WLTH_EXTREME), Lifetime::kExtreme);
  }
}

TEST(FileClassTest, WritesOfTablesAreClassedByActivityThenPriorityThenJobThenHint) {
  struct Case {
    Intent intent;
    IoClass io_class;
  };
  const Case cases[] = {
      {{Activity::kFlush, Env::IO_LOW, Env::WLTH_EXTREME}, IoClass::kFlush},
      {{Activity::kCompaction, Env::IO_HIGH, Env::WLTH_MEDIUM}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_HIGH, Env::WLTH_MEDIUM}, IoClass::kFlush},
      {{Activity::kUnknown, Env::IO_LOW, Env::WLTH_MEDIUM}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_MID, Env::WLTH_NOT_SET}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_USER, Env::WLTH_MEDIUM}, IoClass::kFlush},
      {{Activity::kUnknown, Env::IO_USER, Env::WLTH_LONG}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_USER, Env::WLTH_NOT_SET, 0}, IoClass::kFlush},
      {{Activity::kUnknown, Env::IO_USER, Env::WLTH_MEDIUM, 5}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_LOW, Env::WLTH_NOT_SET, 0}, IoClass::kCompactionWrite},  // within level 0
      {{Activity::kUnknown, Env::IO_TOTAL, Env::WLTH_EXTREME}, IoClass::kCompactionWrite},
      {{Activity::kUnknown, Env::IO_TOTAL, Env::WLTH_NOT_SET}, IoClass::kOther},
      {{Activity::kUser, Env::IO_USER, Env::WLTH_NONE}, IoClass::kOther},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(WriteClassOf(FileType::kTable, c.intent), c.io_class)
        << "activity " << static_cast<int>(c.intent.activity) << " priority " << c.intent.priority << " hint "
        << c.intent.hint;
  }
}

TEST(FileClassTest, ReadsOfTablesAreClassedByActivityThenPriorityThenJob) {
  const auto read = [](Activity activity, Env::IOPriority priority, int8_t job_level = DataClass::kNoLevel) {
    return ReadClassOf(FileType::kTable, {activity, priority, Env::WLTH_NOT_SET, job_level});
  };
  EXPECT_EQ(read(Activity::kUser, Env::IO_LOW), IoClass::kUserRead);
  EXPECT_EQ(read(Activity::kCompaction, Env::IO_USER), IoClass::kCompactionRead);
  EXPECT_EQ(read(Activity::kFlush, Env::IO_TOTAL), IoClass::kFlush);
  EXPECT_EQ(read(Activity::kVerification, Env::IO_TOTAL), IoClass::kOther);
  EXPECT_EQ(read(Activity::kUnknown, Env::IO_LOW), IoClass::kCompactionRead);
  EXPECT_EQ(read(Activity::kUnknown, Env::IO_MID), IoClass::kCompactionRead);
  EXPECT_EQ(read(Activity::kUnknown, Env::IO_USER), IoClass::kUserRead);
  EXPECT_EQ(read(Activity::kUnknown, Env::IO_TOTAL), IoClass::kUserRead);
  EXPECT_EQ(read(Activity::kUnknown, Env::IO_USER, 5), IoClass::kCompactionRead) << "while writes are stalled";
}

TEST(FileClassTest, OtherFilesHaveOneClassWhateverTheIntent) {
  const Intent compaction{Activity::kCompaction, Env::IO_LOW, Env::WLTH_EXTREME};
  const struct {
    FileType type;
    IoClass io_class;
  } cases[] = {{FileType::kWal, IoClass::kWal},
               {FileType::kManifest, IoClass::kMetadata},
               {FileType::kCurrent, IoClass::kMetadata},
               {FileType::kSmall, IoClass::kOther},
               {FileType::kOther, IoClass::kOther}};
  for (const auto& c : cases) {
    EXPECT_EQ(WriteClassOf(c.type, compaction), c.io_class);
    EXPECT_EQ(ReadClassOf(c.type, compaction), c.io_class);
  }
}

}  // namespace
}  // namespace isozone
