#include "fuse/mount_directory.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kMountInfo =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "40 22 0:40 / /mnt/a\\040b rw,nosuid shared:7 master:1 - fuse.isozone emu:/x\\040y.img rw,user_id=0\n"
    "41 22 0:41 / /mnt/c rw - tmpfs tmpfs rw\n"
    "42 41 0:42 / /mnt/c rw - fuse.isozone dev:/dev/nvme0n2 rw\n"
    "43 22 0:43 / /mnt/auto rw - autofs systemd-1 rw,fd=42\n"
    "cut off\n";

class ScratchDirectory {
 public:
  ScratchDirectory() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "isozone-mount-XXXXXX";
};

TEST(MountDirectoryTest, AMountIsFoundByItsDirectory) {
  const auto found = FindMount(kMountInfo, "/mnt/a b");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->type, "fuse.isozone");
  EXPECT_EQ(found->source, "emu:/x y.img");
  EXPECT_EQ(found->number, "0:40");
  EXPECT_TRUE(FindMount(kMountInfo, "/mnt").status().Is(StatusCode::kNotFound));
}

TEST(MountDirectoryTest, OfTwoMountsOnOneDirectoryTheLastCounts) {
  EXPECT_EQ(FindMount(kMountInfo, "/mnt/c")->type, "fuse.isozone");
}

TEST(MountDirectoryTest, AnAutomountThatWaitsIsNothing) {
  EXPECT_TRUE(FindMount(kMountInfo, "/mnt/auto").status().Is(StatusCode::kNotFound));
}

TEST(MountDirectoryTest, ALinkToADirectoryIsFollowed) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path() + "/empty");
  std::filesystem::create_directory_symlink("empty", scratch.path() + "/link");
  std::filesystem::create_directory_symlink(scratch.path() + "/link", scratch.path() + "/second");
  std::filesystem::create_directory_symlink("circle", scratch.path() + "/circle");
  const auto prepared = PrepareDirectory(scratch.path() + "/second/");
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  EXPECT_EQ(*prepared, std::filesystem::canonical(scratch.path() + "/empty").string());
  EXPECT_FALSE(PrepareDirectory(scratch.path() + "/circle").ok());
}

TEST(MountDirectoryTest, AnEmptyDirectoryIsPrepared) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path() + "/empty");
  const auto prepared = PrepareDirectory(scratch.path() + "/./empty/");
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  EXPECT_EQ(*prepared, std::filesystem::canonical(scratch.path() + "/empty").string());
}

TEST(MountDirectoryTest, TheNumberOfAMountIsThatOfItsFiles) {
  struct stat shown {};
  ASSERT_EQ(::stat("/proc", &shown), 0);
  EXPECT_EQ(DeviceNumber(FindMount("/proc").value()), shown.st_dev);
  EXPECT_EQ(DeviceNumber(FindMount(kMountInfo, "/mnt/c").value()), ::makedev(0, 42));
  EXPECT_EQ(DeviceNumber({}), 0u);
}

TEST(MountDirectoryTest, ADeviceIsTheSameByEachOfItsNames) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path() + "/ssd.img") << "x";
  std::filesystem::create_symlink("ssd.img", scratch.path() + "/link.img");
  const std::string uri = "emu:" + scratch.path() + "/ssd.img";
  EXPECT_TRUE(IsSameDevice(uri, uri + "?timing=off"));
  EXPECT_TRUE(IsSameDevice("isozone://" + uri, "emu:" + scratch.path() + "/./link.img"));
  EXPECT_TRUE(IsSameDevice("emu:ssd.img", "emu:./ssd.img"));
  EXPECT_FALSE(IsSameDevice(uri, "emu:" + scratch.path() + "/other.img"));
  EXPECT_FALSE(IsSameDevice("emu:/dev/null", "dev:/dev/null"));
}

TEST(MountDirectoryTest, WhatCannotBeMountedOnIsNamed) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path() + "/file") << "x";
  const Status missing = PrepareDirectory(scratch.path() + "/missing").status();
  EXPECT_TRUE(missing.Is(StatusCode::kNotFound));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("mkdir -p"));
  EXPECT_TRUE(PrepareDirectory(scratch.path() + "/missing/below").status().Is(StatusCode::kNotFound));
  EXPECT_TRUE(PrepareDirectory(scratch.path() + "/file").status().Is(StatusCode::kNotDirectory));
  EXPECT_TRUE(PrepareDirectory(scratch.path()).status().Is(StatusCode::kNotEmpty));
  EXPECT_TRUE(PrepareDirectory("").status().Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(PrepareDirectory("/proc").status().Is(StatusCode::kBusy));
}

}  // namespace
}  // namespace isozone
