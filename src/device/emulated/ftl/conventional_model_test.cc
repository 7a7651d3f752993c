// Closed loops in virtual time. Compares a conventional SSD without GC to the zoned SSD on the same flash, and
// to itself with GC.
#include "device/emulated/ftl/conventional_model.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"
#include "device/emulated/nand/timing_model.h"

namespace isozone {
namespace {

constexpr auto kRead = TimingOpKind::kRead;
constexpr auto kWrite = TimingOpKind::kWrite;
constexpr auto kTrim = TimingOpKind::kTrim;
constexpr auto kFlush = TimingOpKind::kFlush;
constexpr uint64_t kUnit = 192 * kKiB;
constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kCapacity = kGiB;

Profile Builtin(const std::string& name) {
  Result<Profile> profile = LoadProfile(name);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return *profile;
}

Profile Scaled(uint64_t capacity = kCapacity) {
  Result<Profile> profile = ScaleConventional(Builtin("conventional"), capacity);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return *profile;
}

struct Outcome {
  uint64_t bytes = 0;
  uint64_t commands = 0;
  int64_t latency_sum_ns = 0;
  int64_t latency_max_ns = 0;
  int64_t end_ns = 0;

  double MeanUs() const { return static_cast<double>(latency_sum_ns) / static_cast<double>(commands) / 1e3; }
  double BytesPerSecond() const { return static_cast<double>(bytes) * 1e9 / static_cast<double>(end_ns); }
};

// Keeps `depth` commands of `next` in flight until `count` are done. Checks the promises of NextCompletionBound.
Outcome Drive(CommandModel& model, int64_t& now, int depth, uint64_t count, const std::function<TimingOp()>& next) {
  Outcome outcome;
  const int64_t start = now;
  std::map<uint64_t, std::pair<int64_t, uint64_t>> in_flight;
  uint64_t submitted = 0;
  const auto submit = [&] {
    const TimingOp op = next();
    in_flight[submitted] = {now, op.length};
    model.Submit(now, op, submitted++);
  };
  while (submitted < std::min<uint64_t>(depth, count)) submit();
  std::vector<TimingCompletion> completed;
  while (outcome.commands < count) {
    const int64_t bound = model.NextCompletionBound();
    EXPECT_GT(bound, now);
    EXPECT_NE(bound, CommandModel::kNever);
    if (bound <= now || bound == CommandModel::kNever) break;
    completed.clear();
    model.AdvanceTo(bound - 1, completed);
    EXPECT_TRUE(completed.empty());
    now = bound;
    model.AdvanceTo(now, completed);
    for (const TimingCompletion& completion : completed) {
      const auto [started, length] = in_flight.extract(completion.ticket).mapped();
      const int64_t latency = completion.time_ns - started;
      ++outcome.commands;
      outcome.bytes += length;
      outcome.latency_sum_ns += latency;
      outcome.latency_max_ns = std::max(outcome.latency_max_ns, latency);
      if (submitted < count) submit();
    }
  }
  outcome.end_ns = now - start;
  return outcome;
}

std::function<TimingOp()> Sequential(TimingOpKind kind, uint64_t length, uint64_t capacity = kCapacity) {
  return [=, at = uint64_t{0}]() mutable {
    const TimingOp op{kind, 0, at, length, 0};
    at = at + 2 * length <= capacity ? at + length : 0;
    return op;
  };
}

std::function<TimingOp()> Uniform(TimingOpKind kind, uint64_t length, uint64_t seed) {
  return [=, random = Random(seed)]() mutable {
    return TimingOp{kind, 0, random.Below(kCapacity / length) * length, length, 0};
  };
}

class Conventional : public testing::Test {
 protected:
  // Writes the first 64 MiB, and waits until all of it is on flash.
  void Prepare() {
    Drive(model_, now_, 1, 64 * kMiB / kUnit, Sequential(kWrite, kUnit));
    std::vector<TimingCompletion> completed;
    model_.AdvanceTo(now_ += kSecondNs, completed);
  }
  Outcome RunOn(int depth, uint64_t count, const std::function<TimingOp()>& next) {
    return Drive(model_, now_, depth, count, next);
  }

  const Profile profile_ = Scaled();
  ConventionalModel model_{profile_, /*timing=*/true};
  int64_t now_ = 0;
};

// One command on an idle zoned SSD.
int64_t ZonedLatencyNs(const TimingOp& op) {
  TimingModel model(Builtin("small-zone"));
  std::vector<TimingCompletion> completed;
  model.Submit(0, op, 0);
  model.AdvanceTo(kSecondNs, completed);
  return completed.at(0).time_ns;
}

TEST_F(Conventional, SingleCommandsTakeAsLongAsOnTheZonedSsd) {
  Prepare();
  for (const TimingOpKind kind : {kRead, kWrite}) {
    for (const uint64_t length : {kUnit, 64 * kKiB, kBlock}) {  // this order keeps each within a unit
      const Outcome one = RunOn(1, 1, Sequential(kind, length));
      EXPECT_EQ(one.latency_max_ns, ZonedLatencyNs({kind, 0, 0, length, 0})) << length;
      std::vector<TimingCompletion> completed;
      model_.AdvanceTo(now_ += kSecondNs, completed);
    }
  }
}

// The bands of timing_model_test.cc: units lie on dies as zones do.
TEST_F(Conventional, ReadsMeetTheBandsOfTheZonedSsd) {
  Prepare();
  const auto reader = [](uint64_t unit) { return TimingOp{kRead, 0, unit * kUnit, kUnit, 0}; };
  const auto both = [&](uint64_t one, uint64_t other) {
    bool first = false;
    const auto next = [=]() mutable {
      first = !first;
      return reader(first ? one : other);
    };
    return RunOn(2, 400, next).MeanUs();
  };
  EXPECT_NEAR(RunOn(1, 100, [&] { return reader(0); }).MeanUs(), 491, 491 * 0.01);
  EXPECT_NEAR(both(0, 1), 491, 491 * 0.02);
  EXPECT_NEAR(both(0, 8), 550, 550 * 0.05);
  EXPECT_NEAR(both(0, 32), 850, 850 * 0.05);
}

TEST_F(Conventional, WritesAsFastAsAllDiesOfTheZonedSsd) {
  std::vector<uint64_t> at(32, 0);
  TimingModel zoned(Builtin("small-zone"));
  int64_t now = 0;
  uint64_t turn = 0;
  const auto next_zone = [&] {
    const auto zone = static_cast<uint32_t>(turn++ % 32);
    const TimingOp op{kWrite, zone, at[zone], kUnit, 0};
    at[zone] += kUnit;
    return op;
  };
  const double zones = Drive(zoned, now, 64, 4'000, next_zone).BytesPerSecond();
  const double disk = RunOn(64, 4'000, Sequential(kWrite, kUnit)).BytesPerSecond();
  EXPECT_NEAR(disk / zones, 1, 0.03);
}

TEST_F(Conventional, WhatWasNeverWrittenOrWasTrimmedIsReadWithoutFlash) {
  const Outcome empty = RunOn(1, 1, Sequential(kRead, kUnit));
  EXPECT_EQ(empty.latency_max_ns, profile_.read_latency_ns);
  Prepare();
  EXPECT_EQ(RunOn(1, 1, Sequential(kTrim, kUnit)).latency_max_ns, profile_.management_latency_ns);
  EXPECT_EQ(RunOn(1, 1, Sequential(kRead, kUnit)).latency_max_ns, profile_.read_latency_ns);
  EXPECT_EQ(model_.counters().trimmed_pages, kUnit / kBlock);
}

TEST_F(Conventional, FlushTakesItsLatency) {
  EXPECT_EQ(RunOn(1, 1, [] { return TimingOp{kFlush, 0, 0, 0, 0}; }).latency_max_ns, profile_.flush_latency_ns);
}

// The block interface tax: what the ageing of ZenFS+ Fig. 12 comes from.
TEST_F(Conventional, AnAgedDeviceAmplifiesAndSlowsWrites) {
  constexpr uint64_t kCommands = 40'000;
  const double fresh = RunOn(64, kCommands, Uniform(kWrite, 16 * kKiB, 1)).BytesPerSecond();
  EXPECT_EQ(model_.counters().WriteAmplification(), 1.0);

  ConventionalModel aged(profile_, /*timing=*/true);
  aged.Age(3, 1);
  int64_t now = 0;
  const Outcome slow = Drive(aged, now, 64, kCommands, Uniform(kWrite, 16 * kKiB, 1));
  const double amplification = aged.counters().WriteAmplification();
  EXPECT_GT(amplification, 3.5);
  EXPECT_LT(amplification, 4.5);
  // Dies do `amplification` times as many programs, in addition to the reads and erases of GC.
  EXPECT_LT(slow.BytesPerSecond(), fresh / amplification);
  EXPECT_GT(slow.BytesPerSecond(), fresh / amplification * 0.7);
  // GC keeps step with the host: no command waits for a whole superblock of some 6 MiB on each die.
  EXPECT_LT(slow.latency_max_ns, 100 * kMillisecondNs);
}

TEST_F(Conventional, CollectionDelaysReads) {
  ConventionalModel aged(profile_, /*timing=*/true);
  aged.Age(3, 1);
  int64_t now = 0;
  const double quiet = Drive(aged, now, 1, 2'000, Uniform(kRead, kBlock, 2)).MeanUs();
  uint64_t turn = 0;
  const auto read = Uniform(kRead, kBlock, 2);
  const auto write = Uniform(kWrite, 16 * kKiB, 3);
  const double beside_writes = Drive(aged, now, 8, 20'000, [&] { return turn++ % 2 == 0 ? write() : read(); }).MeanUs();
  EXPECT_GT(beside_writes, quiet * 1.5);
}

// The bytes programmed are those that the map says were written, except for units that are not full.
TEST_F(Conventional, ProgramsWhatTheMapWrites) {
  ConventionalModel aged(profile_, /*timing=*/true);
  aged.Age(2, 1);
  int64_t now = 0;
  Drive(aged, now, 32, 20'000, Uniform(kWrite, 8 * kKiB, 4));
  std::vector<TimingCompletion> completed;
  aged.AdvanceTo(now + kSecondNs, completed);
  const FtlCounters& counters = aged.counters();
  const uint64_t written = (counters.host_pages + counters.copied_pages) * kBlock;
  EXPECT_NEAR(static_cast<double>(aged.Media().written), static_cast<double>(written), 2.0 * kUnit);
}

TEST_F(Conventional, IsDeterministic) {
  const auto run = [&] {
    ConventionalModel aged(profile_, /*timing=*/true);
    aged.Age(1, 5);
    int64_t now = 0;
    const Outcome outcome = Drive(aged, now, 16, 5'000, Uniform(kWrite, 12 * kKiB, 6));
    return std::pair(outcome.latency_sum_ns, aged.counters().copied_pages);
  };
  EXPECT_EQ(run(), run());
}

TEST(ConventionalUntimed, CompletesAtOnceAndStillCollects) {
  ConventionalModel model(Scaled(), /*timing=*/false);
  model.Age(2, 1);
  std::vector<TimingCompletion> completed;
  const auto next = Uniform(kWrite, kBlock, 1);
  for (uint64_t i = 0; i < 50'000; ++i) model.Submit(7, next(), i);
  EXPECT_EQ(model.NextCompletionBound(), 7);
  model.AdvanceTo(7, completed);
  ASSERT_EQ(completed.size(), 50'000U);
  EXPECT_EQ(completed.back().time_ns, 7);
  EXPECT_GT(model.counters().WriteAmplification(), 3);
}

// Scaled down, a device keeps its over-provisioning, its number of blocks, and the share of time that erasing takes.
TEST(ScaleConventional, KeepsTheCharacterOfTheDevice) {
  const Profile large = Builtin("conventional");
  const Profile small = Scaled(8 * kGiB);
  EXPECT_EQ(small.capacity, 8 * kGiB);
  EXPECT_EQ(small.over_provisioning_permille, 150U);
  const double scale = static_cast<double>(small.erase_block) / static_cast<double>(large.erase_block);
  EXPECT_NEAR(static_cast<double>(small.erase_ns) / static_cast<double>(large.erase_ns), scale, 0.001);
  EXPECT_GE(FlashLayout::Of(small).superblocks, 256U);
  EXPECT_EQ(ScaleConventional(large, large.capacity)->erase_block, large.erase_block);
  EXPECT_TRUE(ScaleConventional(large, 16 * kMiB).status().Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(ScaleConventional(large, kGiB + 1).status().Is(StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace isozone
