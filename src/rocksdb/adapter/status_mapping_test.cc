#include "rocksdb/adapter/status_mapping.h"

#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace isozone {
namespace {

using rocksdb::IOStatus;

TEST(StatusMappingTest, OkIsOk) { EXPECT_TRUE(ToIoStatus(Status(), "/db/x").ok()); }

TEST(StatusMappingTest, AMissingFileIsAPathNotFound) {
  const IOStatus s = ToIoStatus(Status::NotFound("no such file"), "/db/CURRENT");
  EXPECT_TRUE(s.IsPathNotFound());
  EXPECT_NE(s.ToString().find("/db/CURRENT: no such file"), std::string::npos) << s.ToString();
}

TEST(StatusMappingTest, TheFileIsNamedOnce) {
  const IOStatus s = ToIoStatus(Status::NotFound("'/db/CURRENT' does not exist"), "/db/CURRENT");
  EXPECT_NE(s.ToString().find(": '/db/CURRENT' does not exist"), std::string::npos) << s.ToString();
  EXPECT_EQ(s.ToString().find("/db/CURRENT: "), std::string::npos) << s.ToString();
}

TEST(StatusMappingTest, NoSpaceCanBeRetried) {
  const IOStatus s = ToIoStatus(Status::NoSpace("full"), "");
  EXPECT_TRUE(s.IsNoSpace());
  EXPECT_TRUE(s.GetRetryable());
  EXPECT_FALSE(s.GetDataLoss());
}

TEST(StatusMappingTest, CorruptionIsDataLoss) {
  const IOStatus s = ToIoStatus(Status::Corruption("bad checksum"), "/db/x");
  EXPECT_TRUE(s.IsCorruption());
  EXPECT_TRUE(s.GetDataLoss());
  EXPECT_FALSE(s.GetRetryable());
}

TEST(StatusMappingTest, AReadOnlyFileSystemIsAnErrorThatStays) {
  const IOStatus s = ToIoStatus(Status::ReadOnly("latched"), "/db/x");
  EXPECT_TRUE(s.IsIOError());
  EXPECT_FALSE(s.GetRetryable());
  EXPECT_NE(s.ToString().find("latched"), std::string::npos) << s.ToString();
}

TEST(StatusMappingTest, EveryCodeKeepsItsMeaning) {
  EXPECT_TRUE(ToIoStatus(Status::InvalidArgument("m"), "").IsInvalidArgument());
  EXPECT_TRUE(ToIoStatus(Status::NotSupported("m"), "").IsNotSupported());
  EXPECT_TRUE(ToIoStatus(Status::Aborted("m"), "").IsAborted());
  EXPECT_TRUE(ToIoStatus(Status::Busy("m"), "").IsBusy());
  EXPECT_TRUE(ToIoStatus(Status::IoError("m"), "").IsIOError());
  EXPECT_TRUE(ToIoStatus(Status::NotEmpty("m"), "").IsIOError());
}

TEST(StatusMappingTest, OfANameNothingIsBusyOrInvalidAsOnPosix) {
  EXPECT_TRUE(ToIoStatusOfName(Status(), "/x").ok());
  EXPECT_TRUE(ToIoStatusOfName(Status::NotFound("m"), "/x").IsPathNotFound());
  EXPECT_TRUE(ToIoStatusOfName(Status::NoSpace("m"), "/x").IsNoSpace());
  for (const Status& status : {Status::InvalidArgument("too long"), Status::Busy("being written")}) {
    const IOStatus s = ToIoStatusOfName(status, "/x");
    EXPECT_TRUE(s.IsIOError());
    EXPECT_EQ(s.subcode(), IOStatus::kNone);
    EXPECT_NE(s.ToString().find("/x: " + std::string(status.message())), std::string::npos) << s.ToString();
  }
}

TEST(StatusMappingTest, NoExceptionPasses) {
  EXPECT_TRUE(WithoutExceptions([]() -> IOStatus { throw std::bad_alloc(); }).IsMemoryLimit());
  const IOStatus s = WithoutExceptions([]() -> IOStatus { throw std::out_of_range("index 7"); });
  EXPECT_TRUE(s.IsIOError());
  EXPECT_NE(s.ToString().find("index 7"), std::string::npos) << s.ToString();
  // NOLINTNEXTLINE(bugprone-std-exception-baseclass): programs may throw anything
  EXPECT_TRUE(WithoutExceptions([]() -> IOStatus { throw 7; }).IsIOError());
  EXPECT_TRUE(WithoutExceptions([] { return IOStatus::OK(); }).ok());
}

}  // namespace
}  // namespace isozone
