#include "device/zonefs/open_zonefs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/zonefs/mounted_zone_files.h"

namespace isozone {
namespace {

using testing::HasSubstr;

TEST(OpenZonefs, SaysWhatIsNoMountedZonefs) {
  const std::tuple<const char*, StatusCode, const char*> cases[] = {
      {"zonefs:/no/such/directory", StatusCode::kNotFound, "there is no directory /no/such/directory"},
      {"zonefs:/proc", StatusCode::kNotSupported, "/proc is not where a zonefs is mounted; mount one there: mount -t"},
      {"zonefs:/proc/self/maps", StatusCode::kNotSupported, "not where a zonefs is mounted"},
      {"zonefs:/proc?io=fast", StatusCode::kInvalidArgument, "write ring or threads"},
  };
  for (const auto& [text, code, words] : cases) {
    SCOPED_TRACE(text);
    auto uri = ParseUri(text);
    ASSERT_TRUE(uri.ok());
    Uri again = *uri;
    const Status status = OpenZonefs(*uri, OpenMode::kReadWrite).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.ToString(), HasSubstr(words));
    EXPECT_EQ(CheckZonefs(again).ToString(), status.ToString());
  }
}

TEST(OpenZonefs, FindsTheOptionsOfAMount) {
  constexpr char kMounts[] =
      "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme1n1p1 rw\n"
      "36 22 259:2 / /mnt/z rw,relatime shared:2 master:1 - zonefs /dev/nvme0n2 rw,errors=repair\n"
      "41 22 0:45 / broken\n";
  EXPECT_EQ(MountOptionsOf(kMounts, 259, 2), "rw,errors=repair");
  EXPECT_EQ(MountOptionsOf(kMounts, 259, 1), "rw");
  EXPECT_EQ(MountOptionsOf(kMounts, 259, 3), "");
  EXPECT_EQ(MountOptionsOf(kMounts, 0, 45), "");
}

}  // namespace
}  // namespace isozone
