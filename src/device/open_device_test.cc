#include "device/open_device.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OpenDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "isozone-open-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The URI of an image in the test's directory.
  Uri Image(const std::string& options) {
    auto uri = ParseUri("emu:" + directory_ + "/ssd.img?" + options);
    EXPECT_TRUE(uri.ok()) << uri.status().ToString();
    return *uri;
  }
  Status Create(const std::string& options) {
    Uri uri = Image(options);
    Status status = CreateDevice(uri);
    EXPECT_TRUE(!status.ok() || uri.options.RejectUnknown().ok());
    return status;
  }
  Result<std::unique_ptr<ZonedDevice>> Open(const std::string& options, OpenMode mode = OpenMode::kReadWrite) {
    Uri uri = Image(options);
    return OpenDevice(uri, mode);
  }
  static std::string ErrorOf(const std::string& text) {
    auto uri = ParseUri(text);
    EXPECT_TRUE(uri.ok());
    return OpenDevice(*uri, OpenMode::kReadWrite).status().ToString();
  }

  std::string directory_;
};

TEST_F(OpenDeviceTest, AnImageRemembersTheTimingAndTheSyncThatItWasMadeWith) {
  ASSERT_TRUE(Create("profile=small-zone&zones=40&timing=off&sync=disk").ok());
  EXPECT_FALSE((*Open(""))->description().emulation->timing);
  // A URI says otherwise, and for this time only.
  EXPECT_THAT(Open("timing=on").status().ToString(), HasSubstr("sync=disk would spoil"));
  EXPECT_TRUE((*Open("timing=on&sync=process"))->description().emulation->timing);
  EXPECT_TRUE((*Open("speed=2&sync=process"))->description().emulation->timing) << "a speed is one of timing";
  EXPECT_FALSE((*Open(""))->description().emulation->timing);
}

TEST_F(OpenDeviceTest, AnImageThatWasMadeWithoutSayingHasTheTimingOfItsProfile) {
  ASSERT_TRUE(Create("profile=small-zone&zones=40").ok());
  EXPECT_TRUE((*Open(""))->description().emulation->timing);
  EXPECT_FALSE((*Open("timing=off"))->description().emulation->timing);
}

TEST_F(OpenDeviceTest, MakesADeviceAsAskedAndOpensIt) {
  ASSERT_TRUE(Create("profile=small-zone&zones=40&zone_size=4MiB&zone_capacity=3MiB&max_open=10&max_active=20").ok());
  auto device = Open("timing=off");
  ASSERT_TRUE(device.ok()) << device.status().ToString();
  const DeviceGeometry& g = (*device)->geometry();
  EXPECT_EQ(std::tuple(g.zone_count, g.zone_size, g.zone_capacity), std::tuple(40, 4 * kMiB, 3 * kMiB));
  EXPECT_EQ(std::tuple(g.max_open_zones, g.max_active_zones), std::tuple(10, 20));
  EXPECT_EQ((*device)->name(), "emu:" + directory_ + "/ssd.img");
  EXPECT_FALSE((*device)->read_only());
  EXPECT_TRUE((*Open("timing=off", OpenMode::kReadOnly))->read_only());
}

TEST_F(OpenDeviceTest, ForceUnitAccessCoversItsCommandUnlessTheDeviceIsMadeOtherwise) {
  ASSERT_TRUE(Create("zones=8&zone_size=4MiB").ok());
  EXPECT_FALSE((*Open("timing=off"))->geometry().fua_covers_zone);
  EXPECT_TRUE(Open("fua_covers_zone=off&timing=off").ok());
  EXPECT_THAT(Open("fua_covers_zone=on").status().ToString(),
              AllOf(HasSubstr("fua_covers_zone=on"), HasSubstr("has it off")));
  std::filesystem::remove(directory_ + "/ssd.img");
  ASSERT_TRUE(Create("zones=8&zone_size=4MiB&fua_covers_zone=on").ok());
  EXPECT_TRUE((*Open("timing=off"))->geometry().fua_covers_zone);
  EXPECT_THAT(Open("fua_covers_zone=off").status().ToString(), HasSubstr("has it on"));
}

TEST_F(OpenDeviceTest, PadsZonesOfAnotherSizeWholeIfTheProfileDoes) {
  for (const uint64_t capacity : {1 * kMiB, 100 * kMiB}) {
    std::filesystem::remove(directory_ + "/ssd.img");
    ASSERT_TRUE(Create(fmt::format("profile=small-zone&zones=8&zone_size={0}&zone_capacity={0}", capacity)).ok());
    auto device = Open("timing=off");
    ASSERT_TRUE(device.ok()) << device.status().ToString();
    std::vector<std::byte> block(4096);
    DeviceRequest write;
    write.op = DeviceOp::kWrite;
    write.data = block.data();
    write.length = block.size();
    ASSERT_EQ(SubmitAndWait(**device, write), DeviceStatus::kSuccess);
    DeviceRequest finish;
    finish.op = DeviceOp::kFinish;
    ASSERT_EQ(SubmitAndWait(**device, finish), DeviceStatus::kSuccess);
    EXPECT_EQ((*device)->counters().dummy_bytes_written, capacity - block.size());
  }
}

TEST_F(OpenDeviceTest, ScalesTheCapacityWithTheSize) {
  ASSERT_TRUE(Create("profile=large-zone&zones=16&zone_size=16MiB").ok());
  auto device = Open("");
  ASSERT_TRUE(device.ok()) << device.status().ToString();
  const DeviceGeometry& g = (*device)->geometry();
  EXPECT_EQ(g.zone_capacity, 16 * kMiB * 1077 / 2048 / g.block_size * g.block_size);
}

TEST_F(OpenDeviceTest, MakingAgainChangesNothing) {
  ASSERT_TRUE(Create("zones=40&zone_size=4MiB").ok());
  EXPECT_TRUE(Create("").ok());
  EXPECT_TRUE(Create("zones=40&profile=small-zone").ok());
  EXPECT_EQ((*Open(""))->geometry().zone_count, 40U);
}

TEST_F(OpenDeviceTest, NamesBothValuesWhereTheImageIsNotAsAsked) {
  ASSERT_TRUE(Create("zones=40&zone_size=4MiB").ok());
  for (const Status& status : {Create("zones=41"), Open("zones=41").status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("zones=41"), HasSubstr("has 40")));
  }
  EXPECT_THAT(Open("zone_size=8MiB").status().ToString(), AllOf(HasSubstr("8388608"), HasSubstr("4194304")));
  EXPECT_THAT(Open("max_open=1").status().ToString(), HasSubstr("max_open=1"));
  EXPECT_THAT(Open("profile=large-zone").status().ToString(), AllOf(HasSubstr("large-zone"), HasSubstr("small-zone")));
}

TEST_F(OpenDeviceTest, RefusesBadOptionsBeforeItMakesAnything) {
  EXPECT_THAT(Create("zones=none").ToString(), HasSubstr("zones"));
  EXPECT_THAT(Create("sync=never").ToString(), HasSubstr("write process or disk"));
  EXPECT_THAT(Create("profile=nosuch").ToString(), HasSubstr("nosuch"));
  EXPECT_THAT(Create("block_size=1000").ToString(), HasSubstr("block size of 1000"));
  EXPECT_THAT(Create("max_open=9&max_active=8").ToString(), HasSubstr("open zone limit of 9"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(OpenDeviceTest, SaysThatThereIsNoImage) {
  EXPECT_EQ(Open("").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf("emu:"), HasSubstr("needs the path of an image"));
}

TEST(OpenDevice, KnowsTheSchemes) {
  const std::tuple<const char*, StatusCode, const char*> cases[] = {
      {"nvme:0", StatusCode::kNotSupported, "unknown device scheme 'nvme'"},
      {"zonefs:mnt/z", StatusCode::kInvalidArgument, "write zonefs:/mnt/z"},
      {"zonefs:/mnt/no-such-mount", StatusCode::kNotFound, "there is no directory /mnt/no-such-mount"},
  };
  for (const auto& [text, code, words] : cases) {
    SCOPED_TRACE(text);
    auto uri = ParseUri(text);
    ASSERT_TRUE(uri.ok());
    const Status status = OpenDevice(*uri, OpenMode::kReadWrite).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.ToString(), CreateDevice(*uri).ToString());
    EXPECT_THAT(status.ToString(), HasSubstr(words));
  }
}

TEST(OpenDevice, MakesNoImageAmongTheDeviceNodes) {
  auto uri = ParseUri("emu:/dev/no-such-device");
  ASSERT_TRUE(uri.ok());
  const Status status = CreateDevice(*uri);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("there is no device /dev/no-such-device"));
  EXPECT_FALSE(std::filesystem::exists("/dev/no-such-device"));
}

TEST(OpenDevice, SaysWhatIsNoZonedBlockDevice) {
  const std::tuple<const char*, StatusCode, const char*> cases[] = {
      {"dev:", StatusCode::kInvalidArgument, "needs the path"},
      {"dev:nvme0n1", StatusCode::kInvalidArgument, "dev:/dev/nvme0n2"},
      {"dev:/dev/no-such-device", StatusCode::kNotFound, "there is no device /dev/no-such-device"},
      {"dev:/dev/null", StatusCode::kNotSupported, "no block device"},
      {"dev:/dev?io=ring", StatusCode::kNotSupported, "no block device"},
      {"dev:/dev/null?io=fast", StatusCode::kInvalidArgument, "write ring or threads"},
  };
  for (const auto& [text, code, words] : cases) {
    SCOPED_TRACE(text);
    auto uri = ParseUri(text);
    ASSERT_TRUE(uri.ok());
    Uri again = *uri;
    const Status status = OpenDevice(*uri, OpenMode::kReadWrite).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.ToString(), HasSubstr(words));
    EXPECT_EQ(CreateDevice(again).ToString(), status.ToString());
  }
}

}  // namespace
}  // namespace isozone
