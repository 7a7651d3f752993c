#include "device/izg/identify.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "device/emulated/nand/zone_map.h"
#include "device/izg/virtual_prober_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

constexpr Disturbances kNoisy{.deviation = 0.1, .spikes = 0.01};

// Expects that each group of `groups` consists of exactly the zones of one die.
void ExpectDies(const ZoneGroups& groups, const Profile& profile) {
  const ZoneMap map(profile);
  std::map<uint32_t, uint16_t> group_of_die;
  std::set<uint16_t> seen;
  size_t wrong = 0;
  for (uint32_t zone = 0; zone < profile.zone_count; ++zone) {
    const uint16_t group = groups.group_of_zone[zone];
    const auto [known, is_new] = group_of_die.emplace(map.DieOf(zone, 0), group);
    EXPECT_TRUE(!is_new || seen.insert(group).second) << "die " << known->first << " joined another";
    if (known->second != group) ++wrong;
    EXPECT_GT(groups.confidence_percent[zone], 90) << zone;
  }
  EXPECT_EQ(wrong, 0u) << "of " << profile.zone_count;
  ASSERT_EQ(groups.group_count(), group_of_die.size());
  std::map<uint32_t, uint16_t> channel_of;
  for (const auto& [die, group] : group_of_die) {
    const auto known = channel_of.emplace(die % profile.channels, groups.channel_of_group[group]).first;
    EXPECT_EQ(known->second, groups.channel_of_group[group]) << "die " << die;
  }
  EXPECT_EQ(std::set<uint16_t>(groups.channel_of_group.begin(), groups.channel_of_group.end()).size(),
            channel_of.size());
}

Result<IdentifyReport> Identify(VirtualProber& prober, uint64_t seed) {
  IdentifyOptions options;
  options.seed = seed;
  Result<IdentifyReport> report = IdentifyZoneGroups(prober, options);
  EXPECT_EQ(prober.still_written(), 0u);
  EXPECT_EQ(prober.violations(), std::set<std::string>());
  return report;
}

// Expects the right groups, and few reads, on a device of the size that ZenFS+ used.
void ExpectRightAndCheap(const Profile& profile, uint64_t seed, double reads_a_zone) {
  SCOPED_TRACE(seed);
  VirtualProber prober(profile, kNoisy, seed);
  const auto report = Identify(prober, seed);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ExpectDies(report->groups, profile);
  EXPECT_EQ(report->zones, profile.zone_count);
  const double reads = static_cast<double>(report->reads) / profile.zone_count;
  fmt::print("seed {}: {:.1f} reads a zone\n", seed, reads);
  EXPECT_LE(reads, reads_a_zone);
}

// Three seeds, or the one in ISOZONE_TEST_SEED. They are fixed because a result may be wrong, with the probability that
// the report says: a seed that is new each time would now and then find such a result, which is no defect.
// Confidence.NoMoreResultsAreWrongThanTheReportsSay (disturbance_test.cc) counts them.
std::vector<uint64_t> Seeds() {
  if (std::getenv("ISOZONE_TEST_SEED") != nullptr) return {TestSeed(1)};
  return {1, 2, 3};
}

TEST(Identify, FindsRoundRobin) {
  // One in a hundred reads is late, so every guess is confirmed twice, and some are three times.
  for (const uint64_t seed : Seeds()) ExpectRightAndCheap(SmallZones(29172), seed, seed <= 3 ? 3.5 : 6);
}

TEST(Identify, FindsARandomMappingWithUnequalGroups) {
  Profile profile = SmallZones(29172);
  profile.mapping = ZoneMapping::kRandom;
  for (const uint64_t seed : Seeds()) {
    profile.mapping_seed = seed;
    // Three confirmations instead of two, for the same reason.
    ExpectRightAndCheap(profile, seed, seed <= 3 ? 8 : 9);
  }
}

TEST(Identify, FindsTheGroupsOfFewZones) {
  for (const uint32_t zones : {1u, 2u, 33u, 64u, 100u}) {
    SCOPED_TRACE(zones);
    const Profile profile = SmallZones(zones);
    VirtualProber prober(profile, kNoisy, zones);
    const auto report = Identify(prober, zones);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(report->groups.group_count(), std::min(zones, 32u));
    for (uint32_t zone = 0; zone < zones; ++zone) EXPECT_EQ(report->groups.group_of_zone[zone], zone % 32) << zone;
  }
}

TEST(Identify, FindsOneGroupWhereEveryZoneLiesOnAllDies) {
  for (const uint64_t seed : Seeds()) {
    SCOPED_TRACE(seed);
    VirtualProber prober(LoadProfile("large-zone").value(), kNoisy, seed);
    const auto report = Identify(prober, seed);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(report->groups.group_count(), 1u);
    for (const uint16_t group : report->groups.group_of_zone) ASSERT_EQ(group, 0);
  }
}

TEST(Identify, FindsNoGroupWhereNothingInterferes) {
  Profile profile = SmallZones(100);
  profile.timing = false;
  VirtualProber prober(profile, {}, 1);
  const auto report = Identify(prober, 1);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->groups.group_count(), 0u);
  EXPECT_EQ(report->groups.group_of_zone, std::vector<uint16_t>(100, ZoneGroups::kUnknown));
}

// The prober fails the test if it is told to write a zone in use.
TEST(Identify, OnlyReadsZonesInUse) {
  const Profile profile = SmallZones(500);
  for (const uint64_t seed : Seeds()) {
    SCOPED_TRACE(seed);
    VirtualProber prober(profile, kNoisy, seed);
    Random random(seed);
    for (uint32_t zone = 0; zone < profile.zone_count; ++zone) {
      if (random.Chance(0.5)) prober.Fill(zone, random.Between(1, 2000) * profile.block_size);
    }
    const auto report = Identify(prober, seed);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    ExpectDies(report->groups, profile);
  }
}

TEST(Identify, MeasuresWhatAZoneIsProgrammedAt) {
  Profile profile = SmallZones(128);
  for (const int64_t program_ns : {profile.program_ns, 4 * profile.program_ns}) {
    profile.program_ns = program_ns;
    const double expected = static_cast<double>(profile.program_unit) * kSecondNs / static_cast<double>(program_ns);
    for (const uint64_t seed : Seeds()) {
      SCOPED_TRACE(seed);
      VirtualProber prober(profile, kNoisy, seed);
      const auto report = Identify(prober, seed);
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      EXPECT_NEAR(static_cast<double>(report->groups.zone_bandwidth) / expected, 1, 0.1);
    }
  }
}

TEST(Identify, LeavesTheBandwidthUnknownWhereEveryZoneIsInUse) {
  const Profile profile = SmallZones(128);
  VirtualProber prober(profile, kNoisy, 1);
  for (uint32_t zone = 0; zone < profile.zone_count; ++zone) prober.Fill(zone, profile.zone_capacity);
  const auto report = Identify(prober, 1);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->groups.zone_bandwidth, 0u);
}

// The prober fails the test if more zones are written than may be active. Zones 0 to 3 hold too little for pivots.
TEST(Identify, WritesNoMoreZonesThanMayBeActiveOnABusyHost) {
  Profile profile = SmallZones(512);
  for (const uint32_t active : {100u, 381u}) {
    profile.max_open_zones = profile.max_active_zones = active;
    for (const double spikes : {0.02, 0.3}) {
      for (const uint64_t seed : Seeds()) {
        SCOPED_TRACE(fmt::format("{} may be active, {} of the reads are late, seed {}", active, spikes, seed));
        VirtualProber prober(profile, {.deviation = 0.5, .spikes = spikes}, seed);
        for (uint32_t zone = 0; zone < 4; ++zone) prober.Fill(zone, (zone + 1) * profile.block_size);
        const Status status = Identify(prober, seed).status();
        EXPECT_TRUE(status.ok() || status.Is(StatusCode::kNoSpace) || status.Is(StatusCode::kBusy))
            << status.ToString();
      }
    }
  }
}

// Expects that the zones of a group share a die. Zones of low confidence do not count.
void ExpectSureOnesRight(const ZoneGroups& groups, const Profile& profile) {
  const ZoneMap map(profile);
  std::map<uint16_t, std::set<uint32_t>> dies_of_group;
  for (uint32_t zone = 0; zone < profile.zone_count; ++zone) {
    if (groups.confidence_percent[zone] < 90) continue;
    dies_of_group[groups.group_of_zone[zone]].insert(map.DieOf(zone, 0));
  }
  for (const auto& [group, dies] : dies_of_group) EXPECT_EQ(dies.size(), 1u) << "group " << group;
}

// Identification may give up, or report low confidence.
TEST(Identify, WhatItIsSureOfIsRightOnABusyHost) {
  const Profile profile = SmallZones(500);
  int found = 0;
  for (const double spikes : {0.02, 0.05, 0.1, 0.2, 0.3}) {
    for (const uint64_t seed : Seeds()) {
      SCOPED_TRACE(fmt::format("{} of the reads are late, seed {}", spikes, seed));
      VirtualProber prober(profile, {.deviation = 0.05, .spikes = spikes}, seed);
      const auto report = Identify(prober, seed);
      if (report.status().Is(StatusCode::kBusy)) continue;
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      ++found;
      ExpectSureOnesRight(report->groups, profile);
    }
  }
  EXPECT_GT(found, 0);
}

// If the host sends reads slowly, the device has read the pivots before the needles arrive.
TEST(Identify, GivesUpWhereTheHostIsTooSlowForTheDevice) {
  Profile profile = SmallZones(200);
  for (int64_t* ns : {&profile.page_read_ns, &profile.small_read_ns, &profile.read_latency_ns, &profile.program_ns}) {
    *ns /= 20;
  }
  profile.channel_bandwidth *= 20;
  profile.link_bandwidth *= 20;
  int gave_up = 0;
  for (const int64_t mib_per_second : {8000, 6000, 4000, 3000}) {
    SCOPED_TRACE(mib_per_second);
    VirtualProber prober(profile, {.send_ns_per_mib = kSecondNs / mib_per_second}, 1);
    const auto report = Identify(prober, 1);
    if (report.ok()) {
      EXPECT_EQ(report->groups.group_count(), 32u);
      ExpectSureOnesRight(report->groups, profile);
    } else {
      EXPECT_EQ(report.status().code(), StatusCode::kBusy) << report.status().ToString();
      ++gave_up;
    }
  }
  EXPECT_GT(gave_up, 0);
}

TEST(Identify, ReadsSmallZonesInUseAsPivots) {
  Profile profile = SmallZones(500);
  profile.zone_size = profile.zone_capacity = 512 * kKiB;
  VirtualProber prober(profile, kNoisy, 1);
  for (uint32_t zone = 0; zone < 400; ++zone) prober.Fill(zone, profile.zone_capacity);
  const auto report = Identify(prober, 1);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ExpectDies(report->groups, profile);
  EXPECT_EQ(report->groups.zone_bandwidth, 0u) << "what goes into a buffer is no measure";
}

TEST(Identify, LeavesOutBlocksThatCannotBeRead) {
  const Profile profile = SmallZones(100);
  VirtualProber prober(profile, kNoisy, 1);
  for (uint32_t zone = 0; zone < 100; ++zone) {
    prober.Fill(zone, 16 * kMiB);
    // In the first zones, which become pivots, and in some that are only needles.
    for (const uint64_t mib : {0, 3, 5}) {
      if (zone < 8 || zone % 7 == 0) prober.Damage(zone, mib * kMiB + zone * 4096);
    }
  }
  const auto report = Identify(prober, 1);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ExpectDies(report->groups, profile);
  EXPECT_GE(report->unreadable_blocks, 8u);
  EXPECT_TRUE(report->left_out.empty());
}

TEST(Identify, SetsAsideAZoneThatCannotBeRead) {
  const Profile profile = SmallZones(100);
  for (const uint32_t lost : {0u, 70u}) {
    SCOPED_TRACE(lost);
    VirtualProber prober(profile, kNoisy, 1);
    for (uint32_t zone = 0; zone < 100; ++zone) prober.Fill(zone, 16 * kMiB);
    for (uint64_t at = 0; at < 16 * kMiB; at += 4096) prober.Damage(lost, at);
    const auto report = Identify(prober, 1);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    ASSERT_EQ(report->left_out.size(), 1u);
    EXPECT_EQ(report->left_out[0].zone, ZoneId(lost));
    EXPECT_NE(report->left_out[0].why.message().find("cannot be read"), std::string::npos);
    EXPECT_EQ(report->groups.group_of_zone[lost], ZoneGroups::kUnknown);
    EXPECT_EQ(report->groups.confidence_percent[lost], 0u);
    EXPECT_EQ(report->groups.group_count(), 32u);
    EXPECT_EQ(report->zones, 99u);
  }
}

TEST(Identify, SetsAsideAZoneThatCannotBeWritten) {
  VirtualProber prober(SmallZones(100), kNoisy, 1);
  prober.FailWrites(3);
  const auto report = Identify(prober, 1);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  ASSERT_EQ(report->left_out.size(), 1u);
  EXPECT_EQ(report->left_out[0].zone, ZoneId(3));
  EXPECT_EQ(report->groups.group_of_zone[3], ZoneGroups::kUnknown);
  EXPECT_EQ(report->groups.group_of_zone[35], report->groups.group_of_zone[67]);
  EXPECT_EQ(report->groups.group_count(), 32u);
}

TEST(Identify, FailsWhereTooManyZonesFail) {
  VirtualProber prober(SmallZones(100), kNoisy, 1);
  for (uint32_t zone = 0; zone < 50; ++zone) prober.FailWrites(zone);
  EXPECT_EQ(Identify(prober, 1).status().code(), StatusCode::kIoError);
}

TEST(Identify, TellsHowFarItIsAndStopsWhenItIsToldTo) {
  VirtualProber prober(SmallZones(90), kNoisy, 1);
  std::vector<uint64_t> done;
  IdentifyOptions options;
  options.progress = [&done](uint64_t zones_done, uint64_t zones) {
    EXPECT_EQ(zones, 90u);
    done.push_back(zones_done);
  };
  options.cancelled = [&done] { return !done.empty() && done.back() >= 40; };
  const auto report = IdentifyZoneGroups(prober, options);
  EXPECT_EQ(report.status().code(), StatusCode::kAborted);
  EXPECT_EQ(prober.still_written(), 0u) << "what it wrote stays";
  EXPECT_EQ(prober.violations(), std::set<std::string>());
  EXPECT_EQ(done.front(), 0u) << "from the calibration on";
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_GT(std::set<uint64_t>(done.begin(), done.end()).size(), 10u) << "zone by zone, not batch by batch";
}

TEST(DeviceProber, MarksReadsThatFailAndNamesTheZoneOfOtherErrors) {
  DeviceGeometry geometry;
  geometry.zone_count = 8;
  geometry.zone_size = geometry.zone_capacity = kMiB;
  geometry.optimal_write = 64 * kKiB;
  const auto image = EmulatedDevice::CreateInMemory(geometry).value();
  const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
  const std::vector<ZoneId> all{ZoneId(2), ZoneId(3), ZoneId(4)};
  const auto prober = DeviceProber::Create(*device, all, std::vector<uint64_t>(8)).value();
  ASSERT_TRUE(prober->Prepare(all, 128 * kKiB).ok());
  device->FailNext(DeviceOp::kRead, ZoneId(3), DeviceStatus::kUnrecoveredReadError);
  std::vector<ProbeRead> reads = {{.zone = ZoneId(2), .length = 4096}, {.zone = ZoneId(3), .length = 4096}};
  ASSERT_TRUE(prober->Burst(reads).ok());
  EXPECT_FALSE(reads[0].failed);
  EXPECT_TRUE(reads[1].failed);
  device->FailNext(DeviceOp::kWrite, ZoneId(4), DeviceStatus::kWriteFault);
  EXPECT_FALSE(prober->Prepare(all, 256 * kKiB).ok());
  EXPECT_EQ(prober->failed_zone(), ZoneId(4));
  device->CutPower();
  EXPECT_FALSE(prober->Burst(reads).ok());
  EXPECT_EQ(prober->failed_zone(), std::nullopt) << "which is about all of them";
}

TEST(DeviceProber, WhereThereIsNoLimitActiveZonesTakeNothingAway) {
  DeviceGeometry geometry;
  geometry.block_size = 4096;
  geometry.zone_count = 1100;
  geometry.zone_size = geometry.zone_capacity = 64 * kKiB;
  geometry.optimal_write = geometry.max_append = geometry.block_size;
  const auto image = EmulatedDevice::CreateInMemory(geometry).value();
  const auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
  AlignedBuffer block(geometry.block_size);
  std::vector<uint64_t> written(geometry.zone_count);
  for (uint32_t zone = 0; zone < 1050; ++zone) {
    DeviceRequest write;
    write.op = DeviceOp::kWrite;
    write.offset = geometry.ZoneStart(ZoneId(zone));
    write.data = block.data();
    write.length = written[zone] = block.size();
    ASSERT_EQ(SubmitAndWait(*device, write), DeviceStatus::kSuccess);
  }
  const auto prober = DeviceProber::Create(*device, std::vector<ZoneId>{ZoneId(1099)}, written).value();
  EXPECT_EQ(prober->preparable(), 1024u);
  EXPECT_EQ(prober->zones().size(), 1051u);
}

TEST(Identify, SaysThatTooFewZonesMayBeActive) {
  Profile profile = SmallZones(500);
  profile.max_open_zones = profile.max_active_zones = 20;  // for 32 groups
  VirtualProber prober(profile, {}, 1);
  const auto report = Identify(prober, 1);
  ASSERT_EQ(report.status().code(), StatusCode::kNoSpace);
  EXPECT_NE(report.status().message().find("20 zones may be written"), std::string::npos) << report.status().message();
}

}  // namespace
}  // namespace isozone
