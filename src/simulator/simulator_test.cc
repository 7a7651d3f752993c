#include "simulator/simulator.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/zone/placement_policy.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

using testing::HasSubstr;

Profile ProfileOf(const std::string& name, uint32_t zones) {
  Result<Profile> profile = LoadProfile(name);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  profile->zone_count = zones;
  return *profile;
}

SimPhase PhaseOf(std::string_view text) {
  const auto phase = ParseSimPhase(text);
  EXPECT_TRUE(phase.ok()) << phase.status().ToString();
  return *phase;
}

// 512 MiB, put once and then 1 GiB of it again, in tables of 4 MiB on zones of 16 MiB.
SimOptions SmallOptions() {
  SimOptions options;
  options.load.data_bytes = 512 * kMiB;
  options.load.phases = {PhaseOf("sequential"), PhaseOf("uniform:1G")};
  options.tree.limits = LsmLimits::Exponential(6, 16 * kMiB, 8);
  options.tree.memtable_bytes = 4 * kMiB;
  options.tree.compaction_workers = 2;
  options.tree.level0_slowdown = 8;
  options.tree.level0_stop = 12;
  options.device.profile = ProfileOf("small-zone", 128);
  options.device.profile.zone_size = options.device.profile.zone_capacity = 16 * kMiB;
  options.device.stripe_width = 4;
  return options;
}

SimReport Simulated(const SimOptions& options) {
  auto simulator = Simulator::Create(options);
  EXPECT_TRUE(simulator.ok()) << simulator.status().ToString();
  if (!simulator.ok()) return {};
  const auto report = (*simulator)->Run();
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report.ok() ? *report : SimReport();
}

Status ErrorOf(const SimOptions& options) {
  auto simulator = Simulator::Create(options);
  return simulator.ok() ? (*simulator)->Run().status() : simulator.status();
}

TEST(SimulatorTest, TheSameOptionsGiveTheSameReport) {
  SimOptions options = SmallOptions();
  const SimReport first = Simulated(options);
  const SimReport second = Simulated(options);
  EXPECT_EQ(first.settled_ns, second.settled_ns);
  EXPECT_EQ(first.compaction_bytes, second.compaction_bytes);
  EXPECT_EQ(first.copied_bytes, second.copied_bytes);
  EXPECT_EQ(first.end.zones, second.end.zones);
  options.load.seed = 2;
  EXPECT_NE(first.settled_ns, Simulated(options).settled_ns);
}

// Every record that was put is found with its last put, whatever decides, and zones hold the tables and nothing else.
TEST(SimulatorTest, NoRecordIsLost) {
  for (const std::string_view picker : CompactionPickerNames()) {
    for (const std::string_view policy : PlacementPolicyNames()) {
      SCOPED_TRACE(std::string(picker) + " on " + std::string(policy));
      SimOptions options = SmallOptions();
      options.tree.picker = picker;
      options.device.policy = policy;
      options.device.profile.zone_count = 88;
      options.load.delete_percent = 10;
      auto simulator = Simulator::Create(options);
      ISOZONE_ASSERT_OK(simulator.status());
      const auto report = (*simulator)->Run();
      ISOZONE_ASSERT_OK(report.status());

      std::vector<std::optional<uint64_t>> expected(options.load.records());
      Workload workload(options.load);
      for (ModelRecord record; workload.Next(record);) {
        expected[record.key] = record.deletes ? std::nullopt : std::optional<uint64_t>(record.put);
      }
      for (uint64_t key = 0; key < expected.size(); ++key) {
        ASSERT_EQ(expected[key], (*simulator)->model().Get(key)) << "record " << key;
      }
      // And copies of a round of GC that is under way; logs end with their memtables.
      const uint64_t live_bytes = (*simulator)->zones().ledger().table.totals().live;
      EXPECT_GE(live_bytes, report->file_bytes);
      EXPECT_LE(live_bytes, report->file_bytes + 2 * report->zone_capacity);
    }
  }
}

TEST(SimulatorTest, WhatIsWrittenIsCountedOnce) {
  SimOptions options = SmallOptions();
  options.device.profile.zone_count = 72;
  const SimReport report = Simulated(options);
  EXPECT_EQ(512 * kMiB + kGiB, report.put_bytes);
  EXPECT_LE(report.flush_bytes, report.put_bytes);
  EXPECT_GT(report.flush_bytes, report.put_bytes * 9 / 10);
  EXPECT_EQ(512 * kMiB, report.live_bytes);
  EXPECT_GE(report.file_bytes, report.live_bytes);
  EXPECT_GT(report.copied_bytes, 0U);
  EXPECT_EQ(report.put_bytes, report.log_bytes);
  const uint64_t host_bytes =
      report.log_bytes + report.flush_bytes + report.compaction_bytes + report.copied_bytes + report.dropped_bytes;
  EXPECT_GE(report.media_bytes, host_bytes);
  EXPECT_LT(report.media_bytes, host_bytes * 11 / 10);
  EXPECT_NEAR(report.write_amplification(),
              report.compaction_amplification() * report.gc_amplification() * report.device_amplification(), 1e-9);
  uint32_t zones = 0;
  for (const uint32_t tenth : report.end.zones) zones += tenth;
  EXPECT_EQ(zones, report.end.zones_in_use);
}

TEST(SimulatorTest, EverySchemeEndsWithinTheDevice) {
  for (const std::string_view scheme : {"full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    SCOPED_TRACE(scheme);
    SimOptions options = SmallOptions();
    options.device.profile.zone_count = 72;
    options.device.gc = scheme;
    const SimReport report = Simulated(options);
    EXPECT_GT(report.resets, 0U);
    EXPECT_LE(report.zones_in_use_most, 72U);
  }
}

TEST(SimulatorTest, AFullDeviceIsSaidInOneLine) {
  SimOptions options = SmallOptions();
  options.device.profile.zone_count = 24;
  const Status error = ErrorOf(options);
  EXPECT_TRUE(error.Is(StatusCode::kNoSpace)) << error.ToString();
  EXPECT_THAT(std::string(error.message()), HasSubstr("the device is full"));
  EXPECT_EQ(std::string::npos, error.message().find('\n'));
}

// The figures of docs/measurements/compaction.md, at a small scale: files that are compacted together die together.
TEST(SimulatorTest, SweepsLeaveFewerZonesInUseThanPlainCompaction) {
  SimOptions options = SmallOptions();
  options.load.data_bytes = 4 * kGiB;
  options.load.phases = {PhaseOf("shuffled")};
  options.tree.limits = LsmLimits::Exponential(7, 10 * kMiB, 10);
  options.tree.compaction_workers = 1;
  options.rates.put = 2'000'000;  // the tree is never behind
  options.device.profile = ProfileOf("ll-paper", 400);
  options.device.policy = "level";
  options.device.gc = "none";
  options.tree.picker = "leveled";
  const SimReport leveled = Simulated(options);
  options.tree.picker = "ll";
  const SimReport sweeps = Simulated(options);
  EXPECT_LT(sweeps.end.zones_in_use * 10, leveled.end.zones_in_use * 9);
  EXPECT_GT(sweeps.end.zones[9], leveled.end.zones[9]);
  EXPECT_GT(sweeps.short_lived_bytes, 0U);
}

// As on a mounted file system: a cohort, which one policy heeds.
TEST(SimulatorTest, ShortLivedTablesHaveZonesOfTheirOwnWhereThePolicyHeedsCohorts) {
  for (const std::string_view policy : PlacementPolicyNames()) {
    SCOPED_TRACE(policy);
    SimOptions options = SmallOptions();
    options.tree.picker = "ll";
    options.device.policy = policy;
    auto simulator = Simulator::Create(options);
    ISOZONE_ASSERT_OK(simulator.status());
    const auto apart = (*simulator)->Run();
    ISOZONE_ASSERT_OK(apart.status());
    EXPECT_GT(apart->short_lived_bytes, 0U);
    const bool heeds = policy == "isozone";
    EXPECT_EQ(heeds, (*simulator)->zones().ledger().table.OfCohort(SimWorld::kTZone.id) > 0);
    options.device.t_zone = false;
    const SimReport mixed = Simulated(options);
    EXPECT_EQ(heeds, mixed.settled_ns != apart->settled_ns || mixed.end.zones != apart->end.zones);
  }
}

// RocksDB hints no lifetime where Isozone steers compaction, so that a policy of lifetimes has nothing to go by.
TEST(SimulatorTest, TheLevelAloneSaysNothingToAPolicyOfLifetimes) {
  SimOptions options = SmallOptions();
  options.device.policy = "lifetime";
  options.device.gc = "none";
  options.device.profile.zone_count = 256;  // nothing is collected, and one zone at a time is slow
  options.device.hints = TableHints::kNone;
  const SimReport none = Simulated(options);
  options.device.hints = TableHints::kSteered;
  EXPECT_EQ(none.end.zones, Simulated(options).end.zones);
  options.device.hints = TableHints::kLevel;
  EXPECT_NE(none.end.zones, Simulated(options).end.zones);
}

// What it writes is then what it would write if puts were slow.
TEST(SimulatorTest, PutsThatWaitForCompactionsAreNeverAheadOfThem) {
  SimOptions options = SmallOptions();
  options.tree.compaction_workers = 1;  // so that times do not decide which compaction comes first
  const SimReport fast = Simulated(options);
  options.tree.settles = true;
  const SimReport waiting = Simulated(options);
  options.tree.settles = false;
  options.rates.put = 100'000;
  const SimReport slow = Simulated(options);
  EXPECT_EQ(slow.compaction_bytes, waiting.compaction_bytes);
  EXPECT_NE(fast.compaction_bytes, waiting.compaction_bytes);
  EXPECT_LT(waiting.put_ns, slow.put_ns);
}

TEST(SimulatorTest, PutsWaitForTheLogWherePoliciesDoNotStripe) {
  SimOptions options = SmallOptions();
  options.device.policy = "zenfs";
  const SimReport waiting = Simulated(options);
  EXPECT_GT(waiting.stalls.log_ns, 0);
  options.tree.log = false;
  EXPECT_EQ(0, Simulated(options).stalls.log_ns);
  options.tree.log = true;
  options.device.policy = "isozone";
  EXPECT_LT(Simulated(options).stalls.log_ns, waiting.stalls.log_ns / 4);
}

// The pieces that a large table is written in are longer than those of a file system, which must not matter much.
TEST(SimulatorTest, TheLengthOfPiecesSaysLittleAboutTime) {
  SimOptions options = SmallOptions();
  options.load.data_bytes = 2 * kGiB;
  options.load.phases = {PhaseOf("shuffled"), PhaseOf("uniform:2G")};
  options.tree.limits = LsmLimits::Exponential(6, 128 * kMiB, 8);
  options.tree.limits.table_bytes = options.tree.memtable_bytes = 32 * kMiB;
  options.device.profile.zone_count = 640;
  options.device.stripe_width = 8;
  const SimReport long_pieces = Simulated(options);  // 4 MiB
  options.device.stripe_width = 32;
  const SimReport short_pieces = Simulated(options);  // 1.125 MiB
  EXPECT_GT(static_cast<double>(long_pieces.settled_ns), 0.8 * static_cast<double>(short_pieces.settled_ns));
  EXPECT_LT(static_cast<double>(long_pieces.settled_ns), 1.25 * static_cast<double>(short_pieces.settled_ns));
}

struct EffectCase {
  std::string_view what;
  std::function<void(SimOptions&)> change;
};

// One change, and whether it shows in time or in bytes.
TEST(SimulatorTest, EachOptionHasAnEffect) {
  SimOptions plain = SmallOptions();
  plain.device.profile.zone_count = 72;
  plain.tree.picker = "ll";
  const SimReport before = Simulated(plain);
  const std::vector<EffectCase> cases = {
      {"data", [](SimOptions& o) { o.load.data_bytes += 16 * kMiB; }},
      {"grain", [](SimOptions& o) { o.load.record_bytes = 32 * kKiB; }},
      {"deletes", [](SimOptions& o) { o.load.delete_percent = 20; }},
      {"phases", [](SimOptions& o) { o.load.phases[1] = PhaseOf("zipfian:1G"); }},
      {"memtable", [](SimOptions& o) { o.tree.memtable_bytes = 8 * kMiB; }},
      {"log", [](SimOptions& o) { o.tree.log = false; }},
      {"memtables", [](SimOptions& o) { o.tree.memtables = 1; }},
      {"table", [](SimOptions& o) { o.tree.limits.table_bytes = 8 * kMiB; }},
      {"level 1", [](SimOptions& o) { o.tree.limits = LsmLimits::Exponential(6, 32 * kMiB, 8); }},
      {"level 0", [](SimOptions& o) { o.tree.limits.level0_files = 6; }},
      {"slowdown", [](SimOptions& o) { o.tree.level0_slowdown = 5; }},
      {"stop", [](SimOptions& o) { o.tree.level0_stop = o.tree.level0_slowdown = 5; }},
      {"soft pending", [](SimOptions& o) { o.tree.pending.soft_bytes = 16 * kMiB; }},
      {"hard pending", [](SimOptions& o) { o.tree.pending = {.soft_bytes = 0, .hard_bytes = 16 * kMiB}; }},
      {"flush workers", [](SimOptions& o) { o.tree.flush_workers = 2; }},
      {"compaction workers", [](SimOptions& o) { o.tree.compaction_workers = 1; }},
      {"picker", [](SimOptions& o) { o.tree.picker = "leveled"; }},
      {"put rate", [](SimOptions& o) { o.rates.put /= 2; }},
      {"compaction rate", [](SimOptions& o) { o.rates.compaction /= 2; }},
      {"zones", [](SimOptions& o) { o.device.profile.zone_count = 90; }},
      {"profile", [](SimOptions& o) { o.device.profile.program_ns *= 2; }},
      {"policy", [](SimOptions& o) { o.device.policy = "zenfs"; }},
      {"gc", [](SimOptions& o) { o.device.gc = "lsm-zgc"; }},
      {"gc start", [](SimOptions& o) { o.device.gc_start = 30; }},
      {"gc memory", [](SimOptions& o) { o.device.gc_memory = 8 * kMiB; }},
      {"stripe width", [](SimOptions& o) { o.device.stripe_width = 1; }},
      {"hints", [](SimOptions& o) { o.device.hints = TableHints::kNone; }},
      {"t-zone", [](SimOptions& o) { o.device.t_zone = false; }},
  };
  for (const EffectCase& row : cases) {
    SCOPED_TRACE(row.what);
    SimOptions options = plain;
    row.change(options);
    const SimReport after = Simulated(options);
    EXPECT_TRUE(after.settled_ns != before.settled_ns || after.media_bytes != before.media_bytes);
  }
}

// Of SmallOptions. The live data is 512 MiB.
SimOptions SteeredOptions(uint32_t zones) {
  SimOptions options = SmallOptions();
  options.tree.picker = "isozone";
  SteeredShape& shape = options.tree.steering.emplace();
  shape.levels = options.tree.limits.levels();
  shape.level_base_bytes = 16 * kMiB;
  shape.level_factor = 8;
  shape.table_bytes = shape.memtable_bytes = 4 * kMiB;
  options.device.hints = TableHints::kSteered;
  options.device.profile.zone_count = zones;
  return options;
}

TEST(SimulatorTest, ASteeredTreeHoldsMoreOnTheSameDevice) {
  SimOptions options = SteeredOptions(53);
  const SimReport steered = Simulated(options);
  EXPECT_EQ(steered.live_bytes, 512 * kMiB);
  options.tree.steering.reset();
  EXPECT_EQ(ErrorOf(options).code(), StatusCode::kNoSpace);
}

TEST(SimulatorTest, LevelsOfASteeredTreeAreSizedFromEitherEnd) {
  SimOptions options = SteeredOptions(128);
  const SimReport up = Simulated(options);
  options.tree.steering->dynamic_levels = false;
  EXPECT_NE(Simulated(options).compaction_bytes, up.compaction_bytes);
}

TEST(SimulatorTest, FlushesOfASteeredTreeWaitForDebt) {
  SimOptions options = SteeredOptions(128);
  const SimReport free = Simulated(options);
  options.tree.steering->debt = {.soft_bytes = 1, .hard_bytes = 24 * kMiB};
  const SimReport bounded = Simulated(options);
  EXPECT_EQ(bounded.stalls.pending_ns, 0) << "puts wait for memtables";
  EXPECT_GT(bounded.stalls.memtables_ns, free.stalls.memtables_ns);
}

TEST(SimulatorTest, ATreeOfTwoLevelsCannotBeSteered) {
  SimOptions options = SteeredOptions(128);
  options.tree.limits = LsmLimits::Exponential(2, 16 * kMiB, 8);
  options.tree.steering->levels = 2;
  EXPECT_THAT(std::string(ErrorOf(options).message()), HasSubstr("fewer than three levels"));
}

TEST(SimulatorTest, WithoutMovesFilesAreWrittenAnew) {
  SimOptions options = SmallOptions();
  const SimReport moving = Simulated(options);
  EXPECT_GT(moving.moved_files, 0U);
  options.tree.moves = false;
  const SimReport writing = Simulated(options);
  EXPECT_EQ(0U, writing.moved_files);
  EXPECT_GT(writing.compaction_bytes, moving.compaction_bytes);
}

TEST(SimulatorTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  SimOptions options = SmallOptions();
  options.tree.picker = "best";
  EXPECT_THAT(std::string(ErrorOf(options).message()), HasSubstr("leveled"));
  options = SmallOptions();
  options.device.policy = "best";
  EXPECT_THAT(std::string(ErrorOf(options).message()), HasSubstr("lifetime"));
  options = SmallOptions();
  options.device.gc = "best";
  EXPECT_THAT(std::string(ErrorOf(options).message()), HasSubstr("zenfs+"));
  options = SmallOptions();
  options.device.profile = ProfileOf("conventional", 0);
  EXPECT_THAT(std::string(ErrorOf(options).message()), HasSubstr("conventional SSD"));
}

}  // namespace
}  // namespace isozone
