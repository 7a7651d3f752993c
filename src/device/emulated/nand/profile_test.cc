#include "device/emulated/nand/profile.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kZones = R"(name = mine
zone_count = 10
zone_size = 2MiB
zone_capacity = 1MiB
block_size = 4096
max_open_zones = 3
max_active_zones = 4
)";

const std::string kUntimed = "# comment\n" + kZones + "timing = off\n";

const std::string kFlash = R"(channels = 2
dies = 4
page_size = 16KiB
program_unit = 48KiB
page_read = 60us
program = 1.95ms
erase = 3ms
channel_bandwidth = 800MB/s
write_buffer_units = 2
link_bandwidth = 3.94GB/s
read_latency = 48.4us
write_latency = 15us
management_latency = 10us
flush_latency = 10us
)";

const std::string kTimed = kZones + R"(mapping = random
mapping_seed = 7
small_read_size = 4KiB
small_read = 25.5us
fua_covers_zone = on
)" + kFlash + R"(write_bandwidth = 1GB/s
write_cache = 1MiB
reset_time = 0%:1.6ms 12.5%:6.5ms 100%:16ms
)";

// `text` with the line of `key` replaced by `line`, or removed if `line` is empty.
std::string With(std::string_view text, std::string_view key, std::string_view line) {
  std::string changed(text);
  const size_t begin = changed.find("\n" + std::string(key) + " =") + 1;
  EXPECT_NE(begin, 0U) << key;
  const size_t end = changed.find('\n', begin) + 1;
  return changed.replace(begin, end - begin, line.empty() ? "" : std::string(line) + "\n");
}

std::string ErrorOf(std::string_view text) {
  const Result<Profile> profile = ParseProfile(text, "mine.profile");
  EXPECT_FALSE(profile.ok()) << text;
  EXPECT_TRUE(profile.status().Is(StatusCode::kInvalidArgument));
  return std::string(profile.status().message());
}

TEST(ProfileParse, ReadsEveryKindOfValue) {
  const Result<Profile> profile = ParseProfile(kTimed, "mine.profile");
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_EQ(profile->name, "mine");
  EXPECT_EQ(profile->zone_count, 10U);
  EXPECT_EQ(profile->zone_size, 2 * kMiB);
  EXPECT_TRUE(profile->timing);
  EXPECT_EQ(profile->mapping, ZoneMapping::kRandom);
  EXPECT_EQ(profile->mapping_seed, 7U);
  EXPECT_TRUE(profile->fua_covers_zone);
  EXPECT_EQ(profile->small_read_ns, 25'500);
  EXPECT_EQ(profile->program_ns, 1'950'000);
  EXPECT_EQ(profile->channel_bandwidth, 800'000'000U);
  EXPECT_EQ(profile->link_bandwidth, 3'940'000'000U);
  EXPECT_THAT(profile->reset_time,
              ElementsAre(ResetPoint{0, 1'600'000}, ResetPoint{125, 6'500'000}, ResetPoint{1000, 16'000'000}));
}

TEST(ProfilePadding, IsOfTheZoneTheOpenUnitsOrAStep) {
  Profile profile = ParseProfile(kTimed, "x").value();
  EXPECT_EQ(PaddedByFinish(profile, 4096), 4096U) << "a profile that says nothing of it, as those before had it";
  EXPECT_EQ(PaddedByReset(profile, 4096), 4096U);
  profile = ParseProfile(kTimed + "finish_bandwidth = 1GB/s\n", "x").value();
  EXPECT_EQ(PaddedByFinish(profile, 4096), profile.zone_capacity) << "as profiles before had it";
  EXPECT_EQ(PaddedByFinish(profile, 0), 0U);
  profile = ParseProfile(kTimed + "finish_padding = 300KiB\nreset_padding = 8KiB\n", "x").value();
  EXPECT_EQ(PaddedByFinish(profile, 4096), 300 * kKiB);
  EXPECT_EQ(PaddedByFinish(profile, 300 * kKiB), 300 * kKiB);
  EXPECT_EQ(PaddedByFinish(profile, 1000 * kKiB), profile.zone_capacity);
  EXPECT_EQ(PaddedByReset(profile, 12 * kKiB), 16 * kKiB);
}

TEST(ProfilePadding, BadValuesAreNamed) {
  EXPECT_THAT(ErrorOf(kUntimed + "finish_padding = 1000\n"),
              "mine.profile: finish_padding is not a multiple of block_size, of at most 1TiB");
  EXPECT_THAT(ErrorOf(kUntimed + "reset_padding = 2TiB\n"),
              "mine.profile: reset_padding is not a multiple of block_size, of at most 1TiB");
  EXPECT_THAT(ErrorOf(kUntimed + "finish_padding = zone\n"), StartsWith("mine.profile:10: finish_padding: 'zone'"));
}

TEST(ProfileParse, AcceptsCarriageReturnsBlanksAndAMissingLastNewline) {
  std::string text(With(kUntimed, "zone_count", "\t zone_count=10\t#ten\r"));
  text.pop_back();
  EXPECT_TRUE(ParseProfile(text, "x").ok());
}

TEST(ProfileParse, NeedsNoTimingKeysWithoutTiming) {
  const Result<Profile> profile = ParseProfile(kUntimed, "x");
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_FALSE(profile->timing);
}

TEST(ProfileParse, NamesTheLineOfAnError) {
  EXPECT_THAT(ErrorOf(With(kUntimed, "zone_size", "zone_size 2MiB")),
              "mine.profile:4: 'zone_size 2MiB' is not of the form key = value");
  EXPECT_THAT(ErrorOf(With(kUntimed, "zone_size", "zone_size = 2MB")), StartsWith("mine.profile:4: zone_size: '2MB'"));
}

const std::string kConventional = R"(name = mine
over_provisioning = 7.5%
capacity = 100GiB
erase_block = 2304KiB
block_size = 4096
)" + kFlash;

TEST(ProfileParse, ReadsAConventionalSsd) {
  const Result<Profile> profile = ParseProfile(kConventional, "x");
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_FALSE(profile->zoned());
  EXPECT_EQ(profile->over_provisioning_permille, 75U);
  EXPECT_EQ(profile->capacity, 100 * kGiB);
  EXPECT_FALSE(ParseProfile(kTimed, "x")->over_provisioning_permille);
}

TEST(ProfileParse, KeepsZonedAndConventionalApart) {
  EXPECT_THAT(ErrorOf(With(kConventional, "capacity", "")), "mine.profile: these keys are missing: capacity");
  EXPECT_THAT(ErrorOf(kConventional + "zone_size = 2MiB\n"), HasSubstr("leave out all that says"));
  EXPECT_THAT(ErrorOf(kConventional + "timing = off\n"), HasSubstr("needs its flash"));
  EXPECT_THAT(ErrorOf(kTimed + "erase_block = 48KiB\n"), HasSubstr("of a conventional SSD"));
  EXPECT_THAT(ErrorOf(With(kConventional, "erase_block", "erase_block = 50KiB")), HasSubstr("erase_block is not"));
  EXPECT_THAT(ErrorOf(With(kConventional, "capacity", "capacity = 50MiB")), HasSubstr("spare erase blocks"));
  EXPECT_THAT(ErrorOf(With(kConventional, "over_provisioning", "over_provisioning = 101%")), HasSubstr("percentage"));
}

TEST(ProfileParse, SuggestsTheKeyThatWasMeant) {
  EXPECT_EQ(ErrorOf(With(kUntimed, "zone_size", "zone_sise = 2MiB")),
            "mine.profile:4: unknown key 'zone_sise' (did you mean 'zone_size'?)");
}

TEST(ProfileParse, RefusesARepeatedKey) {
  EXPECT_EQ(ErrorOf(kUntimed + "zone_size = 2MiB\n"), "mine.profile:10: zone_size is repeated; it is also on line 4");
}

TEST(ProfileParse, NamesAllKeysThatAreMissing) {
  EXPECT_EQ(ErrorOf(With(With(kUntimed, "zone_size", ""), "block_size", "")),
            "mine.profile: these keys are missing: zone_size block_size");
  EXPECT_EQ(ErrorOf(With(kTimed, "channels", "")), "mine.profile: these keys are missing: channels");
  EXPECT_THAT(ErrorOf(""), StartsWith("mine.profile: these keys are missing: name zone_count"));
}

TEST(ProfileParse, RefusesBadValues) {
  const std::vector<std::pair<std::string_view, std::string_view>> kBad = {
      {"zone_count", ""},
      {"zone_count", "-1"},
      {"zone_count", "1.5"},
      {"zone_count", "4294967296"},
      {"zone_count", "99999999999999999999"},
      {"zone_size", "16777216T"},
      {"zone_size", "18446744073709551616"},
      {"block_size", "4G"},
      {"mapping", "robin"},
      {"page_read", "60"},
      {"page_read", "60 parsecs"},
      {"page_read", ".5us"},
      {"page_read", "5.us"},
      {"page_read", "1.5.5us"},
      {"page_read", "0.0001us"},
      {"page_read", "3601s"},
      {"channel_bandwidth", "800"},
      {"channel_bandwidth", "800MiB/s"},
      {"channel_bandwidth", "0.5MB/s"},
      {"channel_bandwidth", "1001GB/s"},
      {"reset_time", "1ms"},
      {"reset_time", "50%:"},
      {"reset_time", "100.1%:1ms"},
      {"reset_time", "0.01%:1ms"},
  };
  for (const auto& [key, value] : kBad) {
    const std::string line = std::string(key) + " = " + std::string(value);
    EXPECT_THAT(ErrorOf(With(kTimed, key, line)), HasSubstr(": " + std::string(key) + ": '")) << line;
  }
  EXPECT_THAT(ErrorOf(With(kUntimed, "timing", "timing = no")), HasSubstr("timing: 'no' is not on or off"));
  EXPECT_THAT(ErrorOf("name = A/B\n"), HasSubstr("name: 'A/B' is not a name"));
}

TEST(ProfileParse, RefusesValuesThatContradictOneAnother) {
  const std::vector<std::pair<std::string_view, std::string_view>> kBad = {
      {"zone_count = 0", "zone_count is not in"},
      {"zone_size = 0", "zone_size is not a multiple of block_size, more than 0"},
      {"zone_size = 2097153", "zone_size is not a multiple of block_size"},
      {"zone_size = 2T", "zone_size is not a multiple of block_size, more than 0 and at most 1TiB"},
      {"zone_capacity = 0", "zone_capacity is not a multiple of block_size"},
      {"zone_capacity = 4097", "zone_capacity is not a multiple of block_size"},
      {"zone_capacity = 3MiB", "zone_capacity is larger than zone_size"},
      {"block_size = 0", "block_size is not a power of two"},
      {"block_size = 6144", "block_size is not a power of two"},
      {"block_size = 256", "block_size is not a power of two"},
      {"max_open_zones = 5", "max_open_zones is larger than max_active_zones"},
      {"channels = 3", "dies is not a multiple of channels"},
      {"channels = 0", "dies is not a multiple of channels"},
      {"dies = 0", "dies is not in"},
      {"dies = 1000000", "dies is not in"},
      {"mapping = round-robin", "mapping_seed is given"},
      {"page_size = 0", "page_size is not a multiple of block_size"},
      {"page_size = 6K", "page_size is not a multiple of block_size"},
      {"program_unit = 0", "program_unit is not a multiple of page_size"},
      {"program_unit = 20KiB", "program_unit is not a multiple of page_size"},
      {"page_read = 0us", "page_read is 0"},
      {"program = 0us", "program is 0"},
      {"small_read = 0us", "small_read and small_read_size belong together"},
      {"small_read_size = 16KiB", "small_read_size is not smaller than page_size"},
      {"channel_bandwidth = 0MB/s", "channel_bandwidth is 0"},
      {"link_bandwidth = 0MB/s", "link_bandwidth is 0"},
      {"write_buffer_units = 0", "write_buffer_units is not in"},
      {"write_bandwidth = 0MB/s", "write_cache is given, but write_bandwidth is not"},
      {"reset_time = 10%:1ms 10%:2ms", "not in rising order"},
  };
  for (const auto& [line, message] : kBad) {
    const std::string_view key = line.substr(0, line.find(' '));
    EXPECT_THAT(ErrorOf(With(kTimed, key, line)), HasSubstr(message)) << line;
  }
}

TEST(ProfileParse, MessagesStayOnOneShortPrintableLine) {
  const std::string error = ErrorOf("zone\x01\xff" + std::string(100'000, 'x') + " = 1\n");
  EXPECT_LT(error.size(), 1000U);
  for (const char c : error) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
}

TEST(ProfileParse, SurvivesDamagedText) {
  Random random(1);
  for (int round = 0; round < 2'000; ++round) {
    std::string text = kTimed;
    for (uint64_t i = random.Between(1, 4); i > 0; --i) {
      text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    }
    const Result<Profile> profile = ParseProfile(text, "x");
    if (profile.ok()) {
      EXPECT_TRUE(ValidateProfile(*profile).ok()) << text;
    }
  }
}

TEST(ProfileFormat, ReadsBackToTheSame) {
  std::vector<Profile> profiles = {*ParseProfile(kTimed, "x"), *ParseProfile(kUntimed, "x"),
                                   *ParseProfile(kConventional, "x")};
  for (const std::string& name : BuiltinProfileNames()) profiles.push_back(*LoadProfile(name));
  profiles[0].max_transfer = 256 * kKiB;
  profiles[0].max_append = 5000 * 4096;
  profiles[0].append_ns = 7571;
  profiles[0].finish_bandwidth = 1'234'567'891;
  for (const Profile& profile : profiles) {
    const Result<Profile> again = ParseProfile(FormatProfile(profile), "x");
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_TRUE(*again == profile) << FormatProfile(profile);
  }
}

TEST(ProfileFormat, WritesValuesAsPeopleDo) {
  const std::string text = FormatProfile(*ParseProfile(kTimed, "x"));
  EXPECT_THAT(text, HasSubstr("zone_size = 2MiB\n"));
  EXPECT_THAT(text, HasSubstr("small_read = 25.5us\n"));
  EXPECT_THAT(text, HasSubstr("link_bandwidth = 3940MB/s\n"));
  EXPECT_THAT(text, HasSubstr("reset_time = 0%:1600us 12.5%:6500us 100%:16000us\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("finish_bandwidth")));
}

TEST(ProfileBuiltin, AllAreThereAndValid) {
  EXPECT_THAT(BuiltinProfileNames(), ElementsAre("conventional", "large-zone", "lifetime-paper", "ll-paper",
                                                 "small-zone", "small-zone-96", "zgc-paper"));
  for (const std::string& name : BuiltinProfileNames()) {
    const Result<Profile> profile = LoadProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status().ToString();
    EXPECT_EQ(profile->name, name);
  }
}

TEST(ProfileLoad, ListsTheBuiltinsForAnUnknownName) {
  const Status near = LoadProfile("smal-zone").status();
  EXPECT_TRUE(near.Is(StatusCode::kNotFound));
  EXPECT_THAT(near.message(), HasSubstr("did you mean 'small-zone'?"));
  EXPECT_THAT(LoadProfile("x").status().message(),
              HasSubstr("conventional large-zone lifetime-paper ll-paper small-zone"));
}

class ProfileFile : public testing::Test {
 protected:
  ProfileFile() : path_(testing::TempDir() + "isozone-" + std::to_string(getpid()) + ".profile") {}
  ~ProfileFile() override { std::remove(path_.c_str()); }
  void Write(std::string_view text) const { std::ofstream(path_) << text; }
  const std::string path_;
};

TEST_F(ProfileFile, IsLoadedByItsPath) {
  Write(kTimed);
  const Result<Profile> profile = LoadProfile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_EQ(profile->name, "mine");
}

TEST_F(ProfileFile, IsNamedInErrors) {
  Write("zone_size = x\n");
  EXPECT_THAT(LoadProfile(path_).status().message(), StartsWith(path_ + ":1: zone_size"));
}

TEST_F(ProfileFile, MayBeMissingOrADirectoryOrTooLarge) {
  EXPECT_TRUE(LoadProfile(path_).status().Is(StatusCode::kNotFound));
  EXPECT_TRUE(LoadProfile(testing::TempDir() + "/").status().Is(StatusCode::kIoError));
  Write(std::string(2 * kMiB, '#'));
  EXPECT_THAT(LoadProfile(path_).status().message(), HasSubstr("too large"));
}

}  // namespace
}  // namespace isozone
