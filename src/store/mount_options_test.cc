#include "store/mount_options.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using testing::HasSubstr;

Result<MountOptions> Parse(const std::string& query) {
  Result<Uri> uri = ParseUri("emu:/image?" + query);
  if (!uri.ok()) return uri.status();
  Result<MountOptions> options = MountOptions::FromUri(uri->options);
  if (!options.ok()) return options;
  if (const Status unknown = uri->options.RejectUnknown(); !unknown.ok()) return unknown;
  return options;
}

// Each option has a value that is not its default.
const std::string kAllOthers =
    "policy=level&stripe_width=3&log_width=2&stripe_unit=128K&writer_memory=1M&read_ahead_memory=0&isolation=off&"
    "write_gap=7&write_buffer=2M&gc=lsm-zgc&gc_start=33&gc_memory=9M&checkpoint_after=1M&reader_hold=40&kept_memory=8M&"
    "kept_memory_directory=/tmp";

std::set<std::string> PairsOf(const std::string& text, char separator) {
  std::set<std::string> pairs;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    pairs.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return pairs;
}

TEST(MountOptions, NothingGivenMeansTheDefaults) {
  UriOptions none;
  const auto mount = MountOptions::FromUri(none);
  ASSERT_TRUE(mount.ok()) << mount.status().ToString();
  EXPECT_EQ(mount->ToString(), MountOptions().ToString());
}

TEST(MountOptions, EveryOptionIsTakenAndShown) {
  const auto mount = Parse(kAllOthers);
  ASSERT_TRUE(mount.ok()) << mount.status().ToString();
  const std::set<std::string> defaults = PairsOf(MountOptions().ToString(), ' ');
  const std::set<std::string> shown = PairsOf(mount->ToString(), ' ');
  EXPECT_EQ(shown.size(), ListMountOptions().size());
  for (const std::string& pair : shown) EXPECT_FALSE(defaults.contains(pair)) << pair;
  EXPECT_EQ(mount->stripe_width, 3U);
  EXPECT_EQ(mount->log_width, 2U);
  EXPECT_EQ(mount->stripe_unit, 128 * kKiB);
  EXPECT_EQ(mount->gc.start_percent, 33U);
  EXPECT_EQ(mount->kept_memory, 8 * kMiB);
  EXPECT_EQ(mount->kept_memory_directory, "/tmp");
}

TEST(MountOptions, WhatIsShownIsTakenAgain) {
  const auto mount = Parse(kAllOthers);
  ASSERT_TRUE(mount.ok()) << mount.status().ToString();
  std::string query = mount->ToString();
  std::ranges::replace(query, ' ', '&');
  const auto again = Parse(query);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->ToString(), mount->ToString());
}

TEST(MountOptions, EachOptionAloneMakesAnotherMount) {
  const std::string defaults = MountOptions().ToString();
  for (const std::string& pair : PairsOf(kAllOthers, '&')) {
    const auto mount = Parse(pair);
    ASSERT_TRUE(mount.ok()) << mount.status().ToString();
    EXPECT_NE(mount->ToString(), defaults) << pair;
    EXPECT_THAT(mount->ToString(), HasSubstr(pair));
  }
}

TEST(MountOptions, AValueOutOfItsRangeIsRefusedWithItsName) {
  for (const char* pair : {"stripe_width=0", "stripe_width=257", "log_width=0", "stripe_unit=1K", "stripe_unit=17M",
                           "writer_memory=1K", "read_ahead_memory=5G", "write_gap=1001", "write_buffer=65M",
                           "gc_start=0", "gc_start=91", "gc_memory=7M", "checkpoint_after=1K", "isolation=perhaps"}) {
    const auto mount = Parse(pair);
    ASSERT_FALSE(mount.ok()) << pair;
    const std::string key = std::string(pair).substr(0, std::string(pair).find('='));
    EXPECT_THAT(mount.status().ToString(), HasSubstr(key));
  }
}

TEST(MountOptions, NamesOfPoliciesAndSchemesAreChecked) {
  EXPECT_THAT(Parse("policy=wishful").status().ToString(), HasSubstr("zenfs+gc"));
  EXPECT_FALSE(Parse("gc=wishful").ok());
  EXPECT_THAT(Parse("stripe_wdth=2").status().ToString(), HasSubstr("stripe_width"));
}

TEST(MountOptions, ZenfsWithItsCollectionIsAPolicyAndAScheme) {
  const auto mount = Parse("policy=zenfs+gc");
  ASSERT_TRUE(mount.ok()) << mount.status().ToString();
  EXPECT_EQ(mount->policy, "zenfs");
  EXPECT_EQ(mount->GcScheme(), "zenfs");
  EXPECT_EQ(Parse("policy=zenfs")->GcScheme(), "none");
  EXPECT_EQ(Parse("policy=zenfs+gc&gc=none")->GcScheme(), "none");
  EXPECT_EQ(Parse("gc=none&policy=zenfs+gc")->GcScheme(), "none");
}

TEST(MountOptions, OptionsOfTheCollectionChangeWhatIsGivenAndKeepTheRest) {
  GcOptions before;
  before.memory = 9 * kMiB;
  const auto named = ParseGcOptions("lifetime", before);
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->scheme, "lifetime");
  EXPECT_EQ(named->memory, 9 * kMiB);
  const auto tuned = ParseGcOptions("gc_start=20", *named);
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->scheme, "lifetime");
  EXPECT_EQ(tuned->start_percent, 20U);
  EXPECT_EQ(tuned->memory, 9 * kMiB);
  EXPECT_THAT(ParseGcOptions("gc=lifetime&policy=zenfs", before).status().ToString(), HasSubstr("policy"));
}

}  // namespace
}  // namespace isozone
