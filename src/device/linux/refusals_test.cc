#include "device/linux/refusals.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DeviceUse Use() {
  DeviceUse use;
  use.path = "/dev/nvme0n2";
  return use;
}

// The text of a refusal, which is one line with the path and this code.
std::string TextOf(const Status& status, StatusCode code) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/nvme0n2"));
  return std::string(status.message());
}

TEST(Refusals, SayWhoHasABusyDevice) {
  DeviceUse use = Use();
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EBUSY), StatusCode::kBusy), HasSubstr("another process"));
  use.processes = {12, 34};
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EBUSY), StatusCode::kBusy), HasSubstr("process 12, 34"));
  use.holders = {"dm-0", "md1"};
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EBUSY), StatusCode::kBusy), HasSubstr("part of dm-0, md1"));
  use.mounted_at = "/mnt/data";
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EBUSY), StatusCode::kBusy),
              HasSubstr("mounted at /mnt/data"));
  use.mounted_at = "swap";
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EBUSY), StatusCode::kBusy), HasSubstr("swapping"));
}

TEST(Refusals, SayWhoMayOpenADevice) {
  DeviceUse use = Use();
  use.group = "disk";
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadWrite, EACCES), StatusCode::kPermissionDenied),
              AllOf(HasSubstr("for writing"), HasSubstr("join its group 'disk'"), HasSubstr("udev rule")));
  use.group = "";
  EXPECT_THAT(TextOf(OpenRefused(use, OpenMode::kReadOnly, EPERM), StatusCode::kPermissionDenied),
              AllOf(HasSubstr("for reading"), HasSubstr("udev rule")));
}

TEST(Refusals, SayWhatIsNoUsableDevice) {
  EXPECT_THAT(TextOf(NoSuchDevice("/dev/nvme0n2"), StatusCode::kNotFound), HasSubstr("lsblk --zoned"));
  EXPECT_THAT(TextOf(NotABlockDevice("/dev/nvme0n2"), StatusCode::kNotSupported), HasSubstr("emu:/dev/nvme0n2"));
  EXPECT_THAT(TextOf(NotABlockDevice("/dev/ng0n2"), StatusCode::kNotSupported), HasSubstr(", /dev/nvme0n2"));
  EXPECT_THAT(NotABlockDevice("/dev/nginx").ToString(), HasSubstr("emu:/dev/nginx"));
  EXPECT_THAT(TextOf(NoZones("/dev/nvme0n2"), StatusCode::kNotSupported),
              AllOf(HasSubstr("emu:/dev/nvme0n2,"), HasSubstr("emu:/path/ssd.img")));
  EXPECT_THAT(TextOf(HasZones("/dev/nvme0n2"), StatusCode::kNotSupported), HasSubstr("write dev:/dev/nvme0n2"));
  EXPECT_THAT(TextOf(OpenRefused(Use(), OpenMode::kReadWrite, ENXIO), StatusCode::kNotFound), HasSubstr("removed"));
  EXPECT_THAT(TextOf(OpenRefused(Use(), OpenMode::kReadWrite, EROFS), StatusCode::kReadOnly),
              HasSubstr("blockdev --setrw"));
  TextOf(OpenRefused(Use(), OpenMode::kReadWrite, ENOENT), StatusCode::kNotFound);
  TextOf(OpenRefused(Use(), OpenMode::kReadWrite, EIO), StatusCode::kIoError);
}

TEST(Refusals, SayWhoMaySendCommands) {
  const Status status = CommandsForbidden(EACCES);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("Permission denied"), HasSubstr("Linux before 6.2"), HasSubstr("name the block device")));
}

TEST(Refusals, OnlyAForbiddenIdentifyIsAMatterOfRights) {
  for (const int error : {EACCES, EPERM}) {
    EXPECT_EQ(IdentifyFailed(-error).code(), StatusCode::kPermissionDenied);
  }
  for (const int error : {EINTR, ENOTTY, EIO}) {
    EXPECT_NE(IdentifyFailed(-error).code(), StatusCode::kPermissionDenied) << error;
    EXPECT_THAT(IdentifyFailed(-error).ToString(), HasSubstr("does not identify itself"));
  }
  EXPECT_EQ(IdentifyFailed(0x4002).code(), StatusCode::kIoError);
  EXPECT_THAT(IdentifyFailed(0x4002).ToString(), HasSubstr("does not identify itself: NVMe status 4002h"));
}

TEST(Refusals, FindWhereADeviceIsMounted) {
  constexpr char kMounts[] =
      "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme1n1p1 rw\n"
      "36 22 259:2 / /mnt/my\\040data rw shared:2 master:1 - f2fs /dev/nvme0n2 rw\n"
      "40 22 0:44 /sub /mnt/pool rw - btrfs /dev/nvme0n3 rw,space_cache\n"
      "41 22 0:45 / broken\n";
  constexpr char kSwaps[] = "Filename Type Size Used Priority\n/dev/nvme0n4 partition 1 0 -2\n";
  EXPECT_EQ(MountedAt(kMounts, kSwaps, "/dev/nvme0n2", 259, 2), "/mnt/my data");
  EXPECT_EQ(MountedAt(kMounts, kSwaps, "/dev/other", 259, 2), "/mnt/my data") << "by another name";
  EXPECT_EQ(MountedAt(kMounts, kSwaps, "/dev/nvme0n3", 259, 3), "/mnt/pool") << "with a number of its own";
  EXPECT_EQ(MountedAt(kMounts, kSwaps, "/dev/nvme0n4", 259, 4), "swap");
  EXPECT_EQ(MountedAt(kMounts, kSwaps, "/dev/nvme0n5", 259, 5), "");
}

}  // namespace
}  // namespace isozone
