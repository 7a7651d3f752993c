#include "fuse/fuse_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(std::string_view list) {
  FuseOptions options;
  const Status status = options.Add(list);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << list;
  return std::string(status.message());
}

TEST(FuseOptionsTest, EveryOptionIsTakenOver) {
  FuseOptions options;
  ASSERT_TRUE(options.Add("ro,allow_other,uid=7,gid=8,umask=027,writeback=on").ok());
  ASSERT_TRUE(options.Add("inplace=refuse,io_uring=off,threads=3,noatime").ok());
  EXPECT_TRUE(options.read_only);
  EXPECT_TRUE(options.allow_other);
  EXPECT_EQ(options.uid, 7u);
  EXPECT_EQ(options.gid, 8u);
  EXPECT_EQ(options.umask, 027u);
  EXPECT_TRUE(options.writeback);
  EXPECT_TRUE(options.refuse_in_place);
  EXPECT_FALSE(options.io_uring);
  EXPECT_EQ(options.threads, 3u);
  EXPECT_THAT(options.kernel, ElementsAre("nosuid", "nodev", "noatime"));
}

TEST(FuseOptionsTest, TheLastOfAKindWins) {
  FuseOptions options;
  ASSERT_TRUE(options.Add("ro,rw,writeback,writeback=off,inplace=refuse,inplace=copy").ok());
  EXPECT_FALSE(options.read_only);
  EXPECT_FALSE(options.writeback);
  EXPECT_FALSE(options.refuse_in_place);
}

TEST(FuseOptionsTest, WhatAnFstabSaysToOthersMeansNothing) {
  FuseOptions options;
  EXPECT_TRUE(options.Add("defaults,nofail,_netdev,x-systemd.requires=a.service,comment=b,,noauto,user").ok());
  EXPECT_FALSE(options.allow_other);
}

TEST(FuseOptionsTest, AWrongOptionIsNamedWithWhatToGiveInstead) {
  EXPECT_THAT(Refusal("writebak=on"), HasSubstr("did you mean 'writeback'"));
  EXPECT_THAT(Refusal("writeback=maybe"), HasSubstr("give on or off"));
  EXPECT_THAT(Refusal("inplace=no"), HasSubstr("inplace=copy or inplace=refuse"));
  EXPECT_THAT(Refusal("threads=1"), HasSubstr("from 2 to 64"));
  EXPECT_THAT(Refusal("threads="), HasSubstr("from 2 to 64"));
  EXPECT_THAT(Refusal("umask=8"), HasSubstr("octal"));
  EXPECT_THAT(Refusal("uid=-1"), HasSubstr("a number from 0"));
  EXPECT_THAT(Refusal("remount"), HasSubstr("unmount it"));
}

TEST(FuseOptionsTest, EveryOptionOfTheHelpIsKnown) {
  for (const FuseOptionHelp& help : ListFuseOptions()) {
    std::string option(help.example);
    if (option.ends_with("=N")) option.replace(option.size() - 1, 1, "5");
    if (option.ends_with("=M")) option.replace(option.size() - 1, 1, "022");
    FuseOptions options;
    EXPECT_TRUE(options.Add(option).ok()) << option;
  }
}

}  // namespace
}  // namespace isozone
