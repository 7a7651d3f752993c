// Identification on devices and hosts that are not ideal. For each disturbance, mapping and seed, the result is either
// right or refused in one line, and never wrong.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "device/izg/disturbed_test_util.h"
#include "device/izg/identify.h"
#include "device/izg/virtual_prober_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

// Fixed, because a result may be wrong with the probability that its report says; or the one in ISOZONE_TEST_SEED.
std::vector<uint64_t> Seeds() {
  if (std::getenv("ISOZONE_TEST_SEED") != nullptr) return {TestSeed(1)};
  return {1, 2, 3};
}

void ExpectRight(const IdentifyReport& report, const VirtualProber& prober) {
  EXPECT_EQ(WrongZones(report.groups, prober), 0u);
  EXPECT_LE(report.may_be_wrong, 0.25);
  const auto unknown = std::ranges::count(report.groups.group_of_zone, ZoneGroups::kUnknown);
  EXPECT_EQ(static_cast<size_t>(unknown), report.left_out.size());
}

class Disturbance : public testing::TestWithParam<std::tuple<Disturbed, TestMapping>> {};

TEST_P(Disturbance, LeavesTheResultRightOrRefused) {
  const auto& [disturbed, mapping] = GetParam();
  const Profile profile = SmallZones(6000);
  for (const uint64_t seed : Seeds()) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    VirtualProber prober = MakeProber(profile, mapping, disturbed.disturbances, seed);
    IdentifyOptions options;
    options.seed = seed;
    const auto report = IdentifyZoneGroups(prober, options);
    EXPECT_EQ(prober.still_written(), 0u);
    EXPECT_EQ(prober.violations(), std::set<std::string>());
    if (!report.ok()) {
      EXPECT_TRUE(disturbed.may_refuse || seed > 2) << report.status().ToString();
      EXPECT_TRUE(report.status().Is(StatusCode::kBusy) || report.status().Is(StatusCode::kNotSupported))
          << report.status().ToString();
      EXPECT_EQ(report.status().message().find('\n'), std::string::npos);
      fmt::print("seed {}: refused: {}\n", seed, report.status().message());
      continue;
    }
    if (report->groups.group_count() == 0) {  // only where nothing shows that there are groups, and the report says so
      EXPECT_NE(report->caveat, "");
      EXPECT_EQ(report->groups.confidence_percent[0], 0);
      EXPECT_TRUE(disturbed.may_refuse);
      continue;
    }
    ExpectRight(*report, prober);
    const double reads = static_cast<double>(report->reads) / profile.zone_count;
    fmt::print("seed {}: {:.1f} reads a zone, wrong with {:.1g} at most\n", seed, reads, report->may_be_wrong);
    if (seed <= 2) {
      EXPECT_LE(reads, disturbed.reads_a_zone);
    }
  }
}

std::string NameOfTest(const testing::TestParamInfo<Disturbance::ParamType>& info) {
  const TestMapping mapping = std::get<1>(info.param);
  return std::string(std::get<0>(info.param).name) + (mapping == TestMapping::kRoundRobin ? "RoundRobin"
                                                      : mapping == TestMapping::kPermuted ? "Permuted"
                                                                                          : "Irregular");
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Disturbance,
                         testing::Combine(testing::ValuesIn(kDisturbed), testing::ValuesIn(kTestMappings)), NameOfTest);

// A report says how probable it is that any of its zones is in a wrong group. Over many devices, no more of them may be
// wrong than that; nor may a report get away with saying that everything is doubtful.
TEST(Confidence, NoMoreResultsAreWrongThanTheReportsSay) {
  const uint64_t first = TestSeed(1000);
  double expected = 0;
  uint32_t wrong = 0;
  uint32_t right = 0;
  for (const Disturbed& disturbed : kDisturbed) {
    for (uint64_t seed = first; seed < first + 10; ++seed) {
      Profile profile = SmallZones(500);
      VirtualProber prober = MakeProber(profile, TestMapping::kPermuted, disturbed.disturbances, seed);
      IdentifyOptions options;
      options.seed = seed;
      const auto report = IdentifyZoneGroups(prober, options);
      if (!report.ok() || report->groups.group_count() == 0) continue;
      expected += report->may_be_wrong;
      ++(WrongZones(report->groups, prober) > 0 ? wrong : right);
    }
  }
  fmt::print("{} right, {} wrong, {:.2g} expected to be wrong at most\n", right, wrong, expected);
  EXPECT_LE(wrong, expected + 3 * std::sqrt(expected));  // three standard deviations of a Poisson distribution
  EXPECT_GE(right, 100u);
  EXPECT_LE(expected, right / 10.0);
}

// Few groups, under noise.
TEST(FewGroups, AreFoundUnderNoise) {
  for (const uint32_t dies : {1u, 2u, 3u}) {
    for (const TestMapping mapping : kTestMappings) {
      for (const uint64_t seed : Seeds()) {
        SCOPED_TRACE(fmt::format("{} dies, {}, seed {}", dies, NameOf(mapping), seed));
        Profile profile = SmallZones(400);
        profile.dies = profile.channels = dies;
        VirtualProber prober = MakeProber(profile, mapping, kDisturbed[1].disturbances, seed);
        IdentifyOptions options;
        options.seed = seed;
        const auto report = IdentifyZoneGroups(prober, options);
        ASSERT_TRUE(report.ok()) << report.status().ToString();
        EXPECT_EQ(report->groups.group_count(), dies);
        ExpectRight(*report, prober);
      }
    }
  }
}

}  // namespace
}  // namespace isozone
