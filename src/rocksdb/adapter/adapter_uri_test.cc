#include "rocksdb/adapter/adapter_uri.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(AdapterUriTest, LeavesAUriWithoutItsOptionsAlone) {
  for (const char* uri :
       {"isozone://emu:/ssd.img", "emu:/ssd.img?timing=off&zones=64", "emu:/ssd.img?", "emu:/a?x&y="}) {
    Result<AdapterUri> parsed = AdapterUri::Parse(uri);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->rest, uri);
    EXPECT_FALSE(parsed->read_only);
    EXPECT_EQ(parsed->log_dir, "");
    EXPECT_EQ(parsed->stats_file, "");
  }
}

TEST(AdapterUriTest, TakesItsOptionsFromAnywhereInTheQuery) {
  Result<AdapterUri> parsed =
      AdapterUri::Parse("isozone://emu:/ssd.img?log_dir=/logs&timing=off&read_only=on&zones=64&stats_file=/tmp/s.json");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->rest, "isozone://emu:/ssd.img?timing=off&zones=64");
  EXPECT_TRUE(parsed->read_only);
  EXPECT_EQ(parsed->log_dir, "/logs/emu/ssd.img");
  EXPECT_EQ(parsed->stats_file, "/tmp/s.json");
}

TEST(AdapterUriTest, DropsTheQueryThatHeldNothingElse) {
  Result<AdapterUri> parsed = AdapterUri::Parse("emu:/ssd.img?read_only=off");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->rest, "emu:/ssd.img");
  EXPECT_FALSE(parsed->read_only);
}

TEST(AdapterUriTest, DevicesKeepTheirLogsApart) {
  const auto logs = [](const std::string& device) {
    return AdapterUri::Parse("isozone://" + device + "?log_dir=/logs").value().log_dir;
  };
  EXPECT_EQ(logs("emu:/data/./a.img"), "/logs/emu/data/a.img");
  EXPECT_EQ(logs("emu:/data/b.img"), "/logs/emu/data/b.img");
  EXPECT_EQ(logs("dev:/dev/nvme0n2"), "/logs/dev/dev/nvme0n2");
  EXPECT_EQ(logs("emu:a.img"), "/logs/emu" + std::filesystem::current_path().string() + "/a.img");
}

TEST(AdapterUriTest, RefusesValuesThatDoNotConvert) {
  for (const char* uri : {"emu:/s?read_only=perhaps", "emu:/s?log_dir=logs", "emu:/s?stats_file=stats.json"}) {
    Result<AdapterUri> parsed = AdapterUri::Parse(uri);
    ASSERT_FALSE(parsed.ok()) << uri;
    EXPECT_TRUE(parsed.status().Is(StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace isozone
