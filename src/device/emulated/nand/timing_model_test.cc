// Experiments with closed loops in virtual time, and properties of the model over random devices and commands.
#include "device/emulated/nand/timing_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using testing::ElementsAreArray;

constexpr auto kRead = TimingOpKind::kRead;
constexpr auto kWrite = TimingOpKind::kWrite;
constexpr auto kAppend = TimingOpKind::kAppend;
constexpr auto kReset = TimingOpKind::kReset;
constexpr auto kFinish = TimingOpKind::kFinish;

constexpr uint64_t kUnit = 192 * kKiB;  // the I/O size of the ZenFS+ paper, and a program unit of small-zone
constexpr uint64_t kBlock = 4 * kKiB;
// small-zone: zones of one die are 32 apart, those of one channel 8.
constexpr uint32_t kZone = 0;
constexpr uint32_t kOnSameDie = 32;
constexpr uint32_t kOnSameChannel = 8;
constexpr uint32_t kElsewhere = 1;

MATCHER_P2(WithinPercent, percent, of, "") { return std::abs(static_cast<double>(arg) - of) <= of * percent / 100.0; }

Profile Builtin(const std::string& name) {
  Result<Profile> profile = LoadProfile(name);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return *profile;
}

// Keeps `depth` commands in flight, and counts what completed in the measured time.
struct Actor {
  std::function<TimingOp()> next;
  int depth = 1;

  uint64_t commands = 0;
  uint64_t bytes = 0;
  int64_t latency_sum_ns = 0;
  int64_t latency_max_ns = 0;
  int64_t measured_ns = 0;

  double MeanUs() const { return static_cast<double>(latency_sum_ns) / static_cast<double>(commands) / 1e3; }
  double MaxUs() const { return static_cast<double>(latency_max_ns) / 1e3; }
  double BytesPerSecond() const { return static_cast<double>(bytes) * 1e9 / static_cast<double>(measured_ns); }
};

// An actor that goes through a zone again and again, in pieces of `length`.
Actor Sequential(const Profile& profile, TimingOpKind kind, uint32_t zone, uint64_t length, int depth = 1) {
  const uint64_t end = profile.zone_capacity / length * length;
  Actor actor;
  actor.depth = depth;
  actor.next = [=, at = uint64_t{0}]() mutable {
    const TimingOp op{kind, zone, at, length, 0};
    at = (at + length) % end;
    return op;
  };
  return actor;
}

Actor RandomReads(const Profile& profile, uint64_t length, int depth) {
  Actor actor;
  actor.depth = depth;
  actor.next = [=, random = Random(1)]() mutable {
    const auto zone = static_cast<uint32_t>(random.Below(profile.zone_count));
    const uint64_t piece = random.Below(profile.zone_capacity / length);
    return TimingOp{kRead, zone, piece * length, length, 0};
  };
  return actor;
}

// Runs the actors for 100 ms, and then measures for 300 ms. Returns how often the model was woken up.
uint64_t Simulate(const Profile& profile, std::vector<Actor*> actors) {
  constexpr int64_t kWarmUp = 100 * kMillisecondNs;
  constexpr int64_t kEnd = kWarmUp + 300 * kMillisecondNs;
  TimingModel model(profile);
  std::map<uint64_t, int64_t> started_at;
  uint64_t tickets = 0;
  const auto submit = [&](int64_t now, size_t actor) {
    const uint64_t ticket = tickets++ * actors.size() + actor;
    started_at[ticket] = now;
    const TimingOp op = actors[actor]->next();
    actors[actor]->bytes += now >= kWarmUp ? op.length : 0;
    model.Submit(now, op, ticket);
  };
  for (size_t i = 0; i < actors.size(); ++i) {
    actors[i]->measured_ns = kEnd - kWarmUp;
    for (int k = 0; k < actors[i]->depth; ++k) submit(0, i);
  }
  uint64_t wake_ups = 0;
  std::vector<TimingCompletion> completed;
  for (int64_t now = 0; now < kEnd;) {
    now = model.NextCompletionBound();
    completed.clear();
    model.AdvanceTo(now, completed);
    ++wake_ups;
    for (const TimingCompletion& completion : completed) {
      Actor& actor = *actors[completion.ticket % actors.size()];
      const int64_t latency = completion.time_ns - started_at[completion.ticket];
      started_at.erase(completion.ticket);
      if (now >= kWarmUp) {
        ++actor.commands;
        actor.latency_sum_ns += latency;
        actor.latency_max_ns = std::max(actor.latency_max_ns, latency);
      }
      submit(now, completion.ticket % actors.size());
    }
  }
  return wake_ups;
}

Actor Alone(const Profile& profile, Actor actor) {
  Simulate(profile, {&actor});
  return actor;
}

Actor Beside(const Profile& profile, Actor other, Actor actor) {
  Simulate(profile, {&actor, &other});
  return actor;
}

// One command at time 0 on an idle device.
int64_t LatencyNs(const Profile& profile, const TimingOp& op) {
  TimingModel model(profile);
  std::vector<TimingCompletion> completed;
  model.Submit(0, op, 0);
  model.AdvanceTo(TimingModel::kNever - 1, completed);
  EXPECT_EQ(completed.size(), 1U);
  return completed.at(0).time_ns;
}

class SmallZone : public testing::Test {
 protected:
  Actor Reader(uint32_t zone) const { return Sequential(profile_, kRead, zone, kUnit); }
  Actor Writer(uint32_t zone) const { return Sequential(profile_, kWrite, zone, kUnit); }
  const Profile profile_ = Builtin("small-zone");
};

// ZenFS+ Fig. 3a: 490, 550 and 850 us.

TEST_F(SmallZone, ReadAloneTakes490Us) { EXPECT_THAT(Alone(profile_, Reader(kZone)).MeanUs(), WithinPercent(5, 490)); }

TEST_F(SmallZone, ReadBesideReaderOfAnotherChannelTakes490Us) {
  EXPECT_THAT(Beside(profile_, Reader(kZone), Reader(kElsewhere)).MeanUs(), WithinPercent(5, 490));
}

TEST_F(SmallZone, ReadBesideReaderOfSameChannelTakes550Us) {
  EXPECT_THAT(Beside(profile_, Reader(kZone), Reader(kOnSameChannel)).MeanUs(), WithinPercent(5, 550));
}

TEST_F(SmallZone, ReadBesideReaderOfSameDieTakes850Us) {
  EXPECT_THAT(Beside(profile_, Reader(kZone), Reader(kOnSameDie)).MeanUs(), WithinPercent(5, 850));
}

// ZenFS+ section II.C and Fig. 3b: a write takes about four reads; writes peak at 4 ms.

TEST_F(SmallZone, WriteAloneGoesAtThePaceOfTheDie) {
  const Actor writer = Alone(profile_, Writer(kZone));
  EXPECT_THAT(writer.MeanUs(), WithinPercent(2.6, 1950));  // 1.9 to 2.0 ms
  EXPECT_THAT(writer.MaxUs(), WithinPercent(2.6, 1950));
  EXPECT_THAT(writer.BytesPerSecond(), WithinPercent(3.5, 99.5e6));  // 96 to 103 MB/s
}

TEST_F(SmallZone, WriteBesideWriterOfAnotherDieIsNotDisturbed) {
  EXPECT_THAT(Beside(profile_, Writer(kZone), Writer(kOnSameChannel)).MeanUs(), WithinPercent(2.6, 1950));
}

TEST_F(SmallZone, WriteBesideWriterOfSameDieTakes4Ms) {
  EXPECT_THAT(Beside(profile_, Writer(kZone), Writer(kOnSameDie)).MeanUs(), WithinPercent(5, 4000));
}

// Every read finds a unit being programmed and another waiting.
TEST_F(SmallZone, ReadBesideWriterOfSameDiePeaksNear4Ms) {
  EXPECT_THAT(Beside(profile_, Writer(kZone), Reader(kOnSameDie)).MaxUs(), WithinPercent(10, 4000));
}

// Between two units the die serves one read: two units and a read take the time of two writes.
TEST_F(SmallZone, WriteBesideReaderOfSameDieWaitsForHalfARead) {
  EXPECT_THAT(Beside(profile_, Reader(kZone), Writer(kOnSameDie)).MeanUs(), WithinPercent(5, 1950 + 490 / 2));
}

TEST_F(SmallZone, AllDiesTogetherWrite3100MBps) {
  std::vector<Actor> writers;
  std::vector<Actor*> actors;
  for (uint32_t zone = 0; zone < profile_.dies; ++zone) writers.push_back(Writer(zone));
  for (Actor& writer : writers) actors.push_back(&writer);
  Simulate(profile_, actors);
  double total = 0;
  for (const Actor& writer : writers) total += writer.BytesPerSecond();
  EXPECT_THAT(total, WithinPercent(5, 3.1e9));
}

TEST_F(SmallZone, ReadsOfAllDiesTogetherFillTheLink) {
  EXPECT_THAT(Alone(profile_, RandomReads(profile_, kUnit, 512)).BytesPerSecond(), WithinPercent(1, 3.94e9));
}

TEST_F(SmallZone, SmallReadsHaveAShorterArrayTime) {
  // 48.4 us of latency, 25.5 us of array, 5.1 us of channel, 1.0 us of link.
  EXPECT_THAT(LatencyNs(profile_, {kRead, kZone, 0, kBlock, 0}), WithinPercent(0.1, 80'060.0));
}

TEST_F(SmallZone, ReadOfNothingTakesOnlyTheLatency) {
  EXPECT_EQ(LatencyNs(profile_, {kRead, kZone, 0, 0, 0}), profile_.read_latency_ns);
}

TEST_F(SmallZone, SmallWritesWaitForNoProgram) {
  // 15.1 us of latency, 1.0 us of link, 5.1 us of channel.
  EXPECT_THAT(LatencyNs(profile_, {kWrite, kZone, 0, kBlock, 0}), WithinPercent(0.1, 21'260.0));
}

TEST_F(SmallZone, SmallWritesAreNotDisturbedByAWriterOfAnotherDie) {
  Actor writer = Writer(kElsewhere);
  Actor small = Sequential(profile_, kWrite, kZone, kBlock);
  EXPECT_THAT(Beside(profile_, writer, small).MeanUs(), WithinPercent(1, Alone(profile_, small).MeanUs()));
}

TEST_F(SmallZone, ResetOccupiesTheDie) {
  const TimingOp reset{kReset, kZone, 0, 0, kUnit};
  EXPECT_EQ(LatencyNs(profile_, reset), profile_.management_latency_ns + profile_.erase_ns);
  TimingModel model(profile_);
  std::vector<TimingCompletion> completed;
  model.Submit(0, reset, 0);
  model.Submit(0, {kRead, kOnSameDie, 0, kBlock, 0}, 1);
  model.Submit(0, {kRead, kElsewhere, 0, kBlock, 0}, 2);
  model.AdvanceTo(kSecondNs, completed);
  ASSERT_EQ(completed.size(), 3U);
  EXPECT_EQ(completed[0].ticket, 2U);
  EXPECT_EQ(completed[1].ticket, 0U);
  EXPECT_EQ(completed[2].ticket, 1U);
}

TEST_F(SmallZone, ResetOfAnEmptyZoneErasesNothing) {
  EXPECT_EQ(LatencyNs(profile_, {kReset, kZone, 0, 0, 0}), profile_.management_latency_ns);
}

TEST_F(SmallZone, FinishProgramsTheRestOfTheZone) {
  const auto units = static_cast<int64_t>(profile_.zone_capacity / kUnit);
  EXPECT_EQ(LatencyNs(profile_, {kFinish, kZone, 0, 0, kUnit}),
            profile_.management_latency_ns + (units - 1) * profile_.program_ns);
}

TEST_F(SmallZone, OpenCloseAndFlushTakeTheirLatency) {
  EXPECT_EQ(LatencyNs(profile_, {TimingOpKind::kOpen}), profile_.management_latency_ns);
  EXPECT_EQ(LatencyNs(profile_, {TimingOpKind::kClose}), profile_.management_latency_ns);
  EXPECT_EQ(LatencyNs(profile_, {TimingOpKind::kFlush}), profile_.flush_latency_ns);
}

// What was measured on a WD ZN540 (raw data of the CLUSTER'23 benchmarks).

class LargeZone : public testing::Test {
 protected:
  const Profile profile_ = Builtin("large-zone");
};

TEST_F(LargeZone, OneZoneWrites1210MBps) {
  const Actor writer = Alone(profile_, Sequential(profile_, kWrite, kZone, kMiB, 4));
  EXPECT_THAT(writer.BytesPerSecond(), WithinPercent(10, 1.21e9));
}

TEST_F(LargeZone, EightZonesWriteNoFasterThanOne) {
  std::vector<Actor> writers;
  std::vector<Actor*> actors;
  for (uint32_t zone = 0; zone < 8; ++zone) writers.push_back(Sequential(profile_, kWrite, zone, kMiB));
  for (Actor& writer : writers) actors.push_back(&writer);
  Simulate(profile_, actors);
  double total = 0;
  for (const Actor& writer : writers) total += writer.BytesPerSecond();
  EXPECT_THAT(total, WithinPercent(10, 1.21e9));
}

TEST_F(LargeZone, Write4KiBTakes12Us) {
  EXPECT_THAT(Alone(profile_, Sequential(profile_, kWrite, kZone, kBlock)).MeanUs(), WithinPercent(10, 12.6));
}

TEST_F(LargeZone, Write128KiBTakes106Us) {
  EXPECT_THAT(Alone(profile_, Sequential(profile_, kWrite, kZone, 128 * kKiB)).MeanUs(), WithinPercent(10, 106));
}

TEST_F(LargeZone, AppendsOf4KiBReach541MBpsAtAnyDepth) {
  EXPECT_THAT(Alone(profile_, Sequential(profile_, kAppend, kZone, kBlock, 4)).BytesPerSecond(),
              WithinPercent(10, 541e6));
  EXPECT_THAT(Alone(profile_, Sequential(profile_, kAppend, kZone, kBlock, 32)).BytesPerSecond(),
              WithinPercent(10, 541e6));
}

TEST_F(LargeZone, RandomRead4KiBTakes74Us) {
  EXPECT_THAT(Alone(profile_, RandomReads(profile_, kBlock, 1)).MeanUs(), WithinPercent(10, 74));
}

TEST_F(LargeZone, RandomReads4KiBAtDepth128Reach1730MBps) {
  EXPECT_THAT(Alone(profile_, RandomReads(profile_, kBlock, 128)).BytesPerSecond(), WithinPercent(10, 1.73e9));
}

TEST_F(LargeZone, ResetTakesLongerTheFullerTheZone) {
  const auto reset_ms = [&](double fill) {
    const auto written = static_cast<uint64_t>(fill * static_cast<double>(profile_.zone_capacity));
    return static_cast<double>(LatencyNs(profile_, {kReset, kZone, 0, 0, written})) / 1e6;
  };
  EXPECT_THAT(reset_ms(0), WithinPercent(10, 1.6));
  EXPECT_THAT(reset_ms(0.125), WithinPercent(7.7, 6.5));  // 6 to 7 ms
  EXPECT_THAT(reset_ms(0.5), WithinPercent(10, 12));
  EXPECT_THAT(reset_ms(0.75), WithinPercent(10, 14));  // between the two
  EXPECT_THAT(reset_ms(1), WithinPercent(10, 16));
}

TEST_F(LargeZone, FinishPadsTheRestAt1240MBps) {
  const auto finish_ms = [&](uint64_t written) {
    return static_cast<double>(LatencyNs(profile_, {kFinish, kZone, 0, 0, written})) / 1e6;
  };
  EXPECT_THAT(finish_ms(kBlock), WithinPercent(10, 908));
  EXPECT_THAT(finish_ms(profile_.zone_capacity / 2), WithinPercent(10, 454));
}

// Bytes on flash.

// Several appends to one zone may be in flight at a time, but only one write. Files are written all the same, because
// writes are as fast: the buffer of a die, or the bandwidth of the device, already limits one zone. If a zone spans all
// dies and nothing else limits it, two files at a time are as fast. One file alone would be 1.6 times as fast with
// appends, at 3.2 GB/s.
struct WriteOrAppendCase {
  const char* profile;
  uint64_t length;   // of each write: a stripe unit of 384 KiB is written in what is programmed at once
  uint32_t writers;  // each to a zone
};

class WriteOrAppend : public testing::TestWithParam<WriteOrAppendCase> {
 protected:
  // Bytes a second of all writers together, each with `depth` commands in flight.
  double BytesPerSecond(TimingOpKind kind, int depth) const {
    const Profile profile = Builtin(GetParam().profile);
    std::vector<Actor> writers;
    for (uint32_t zone = 0; zone < GetParam().writers; ++zone) {
      writers.push_back(Sequential(profile, kind, zone, GetParam().length, depth));
    }
    std::vector<Actor*> actors;
    for (Actor& writer : writers) actors.push_back(&writer);
    Simulate(profile, actors);
    double sum = 0;
    for (const Actor& writer : writers) sum += writer.BytesPerSecond();
    return sum;
  }
};

TEST_P(WriteOrAppend, OneWriteAZoneIsAsFastAsAppendsSideBySide) {
  const double written = BytesPerSecond(kWrite, 1);
  for (const int depth : {1, 4, 16}) EXPECT_LE(BytesPerSecond(kAppend, depth), 1.05 * written) << "at depth " << depth;
}

INSTANTIATE_TEST_SUITE_P(Profiles, WriteOrAppend,
                         testing::Values(WriteOrAppendCase{"small-zone", 384 * kKiB, 1},
                                         WriteOrAppendCase{"small-zone-96", 384 * kKiB, 1},
                                         WriteOrAppendCase{"large-zone", 384 * kKiB, 1},
                                         WriteOrAppendCase{"zgc-paper", 384 * kKiB, 2},
                                         WriteOrAppendCase{"ll-paper", 384 * kKiB, 2}),
                         [](const auto& test) {
                           std::string name = test.param.profile;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class MediaWritten : public testing::Test {
 protected:
  uint64_t After(const std::vector<TimingOp>& ops, const Profile& profile) {
    TimingModel model(profile);
    int64_t now = 0;
    std::vector<TimingCompletion> completed;
    for (const TimingOp& op : ops) {
      model.Submit(now, op, 0);
      model.AdvanceTo(now += 10 * kSecondNs, completed);
    }
    EXPECT_EQ(completed.size(), ops.size());
    return model.Media().written;
  }
  const Profile small_ = Builtin("small-zone");
  const Profile large_ = Builtin("large-zone");
};

TEST_F(MediaWritten, AUnitThatIsNotFullStaysInTheBuffer) {
  EXPECT_EQ(After({{kWrite, 0, 0, kUnit - kBlock, 0}}, small_), 0U);
  EXPECT_EQ(After({{kWrite, 0, 0, kUnit - kBlock, 0}, {kWrite, 0, kUnit - kBlock, kBlock, 0}}, small_), kUnit);
}

TEST_F(MediaWritten, TheEndOfAZonePadsItsLastUnit) {
  Profile odd = small_;
  odd.zone_capacity = 2 * kUnit + kBlock;
  EXPECT_EQ(After({{kWrite, 0, 0, odd.zone_capacity, 0}}, odd), 3 * kUnit);
  EXPECT_EQ(After({{kWrite, 0, 0, odd.zone_capacity, 0}, {kFinish, 0, 0, 0, odd.zone_capacity}}, odd), 3 * kUnit);
}

TEST_F(MediaWritten, FinishAtABandwidthPadsTheWholeZone) {
  EXPECT_THAT(After({{kWrite, 0, 0, kBlock, 0}, {kFinish, 0, 0, 0, kBlock}}, large_),
              WithinPercent(0.1, static_cast<double>(large_.zone_capacity)));
}

TEST_F(MediaWritten, AnInterleavedZoneFillsUnitsOnEveryDie) {
  const uint64_t row = large_.page_size * large_.dies;
  EXPECT_EQ(After({{kWrite, 0, 0, 2 * row, 0}}, large_), 0U);
  EXPECT_EQ(After({{kWrite, 0, 0, 2 * row, 0}, {kWrite, 0, 2 * row, row, 0}}, large_), 3 * row);
}

// Without timing.

TEST(TimingOff, EverythingCompletesAtOnce) {
  TimingModel model(Builtin("lifetime-paper"));
  EXPECT_EQ(model.NextCompletionBound(), TimingModel::kNever);
  model.Submit(5, {kWrite, 0, 0, kBlock, 0}, 1);
  model.Submit(7, {kReset, 0, 0, 0, kBlock}, 2);
  EXPECT_EQ(model.NextCompletionBound(), 5);
  std::vector<TimingCompletion> completed;
  model.AdvanceTo(7, completed);
  ASSERT_EQ(completed.size(), 2U);
  EXPECT_EQ(completed[0].time_ns, 5);
  EXPECT_EQ(completed[1].time_ns, 7);
  EXPECT_EQ(model.NextCompletionBound(), TimingModel::kNever);
  EXPECT_EQ(model.Media().written, kBlock);
}

// The bound.

TEST(Bound, IsNeverWithNothingInFlight) {
  EXPECT_EQ(TimingModel(Builtin("small-zone")).NextCompletionBound(), TimingModel::kNever);
}

TEST(Bound, IsExactForACommandAlone) {
  const Profile profile = Builtin("small-zone");
  for (const TimingOp& op :
       {TimingOp{kRead, 0, 0, kUnit, 0}, TimingOp{kRead, 0, kBlock, kBlock, 0}, TimingOp{kWrite, 0, 0, kUnit, 0},
        TimingOp{kAppend, 0, 0, kBlock, 0}, TimingOp{kReset, 0, 0, 0, kUnit}, TimingOp{kFinish, 0, 0, 0, kBlock},
        TimingOp{TimingOpKind::kFlush}}) {
    TimingModel model(profile);
    model.Submit(0, op, 0);
    EXPECT_EQ(model.NextCompletionBound(), LatencyNs(profile, op));
  }
}

TEST(Bound, TakesOneWakeUpForEachCommandAtDepthOne) {
  const Profile profile = Builtin("small-zone");
  for (const TimingOpKind kind : {kRead, kWrite}) {
    Actor actor = Sequential(profile, kind, kZone, kUnit);
    uint64_t submitted = 0;
    const auto next = actor.next;
    actor.next = [&] {
      ++submitted;
      return next();
    };
    const uint64_t wake_ups = Simulate(profile, {&actor});
    EXPECT_EQ(wake_ups + 1, submitted);
  }
}

// Properties, over random devices and commands.

struct Submission {
  int64_t time = 0;
  TimingOp op;
};

// Runs `check` from 100 seeds, or from the one in ISOZONE_TEST_SEED, until one fails.
void FromSeeds(const std::function<void(Random&)>& check) {
  const uint64_t first = TestSeed(1);
  const uint64_t last = std::getenv("ISOZONE_TEST_SEED") != nullptr ? first : first + 99;
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("replay with ISOZONE_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    check(random);
  }
}

Profile RandomDevice(Random& random) {
  Profile p = Builtin("small-zone");
  p.zone_count = static_cast<uint32_t>(random.Between(1, 40));
  p.channels = static_cast<uint32_t>(random.Between(1, 4));
  p.dies = p.channels * static_cast<uint32_t>(random.Between(1, 4));
  p.mapping = static_cast<ZoneMapping>(random.Below(3));
  p.mapping_seed = p.mapping == ZoneMapping::kRandom ? random.Next() : 0;
  p.page_size = uint64_t{16} * kKiB << random.Below(3);
  p.program_unit = p.page_size * random.Between(1, 4);
  p.zone_capacity = p.zone_size = kBlock * random.Between(1, 1000);
  p.write_buffer_units = static_cast<uint32_t>(random.Between(1, 3));
  p.program_ns = static_cast<int64_t>(random.Between(1, 2'000'000));
  p.erase_ns = static_cast<int64_t>(random.Below(2'000'000));
  if (random.Chance(0.3)) p.small_read_size = static_cast<uint64_t>(p.small_read_ns = 0);
  if (random.Chance(0.5)) p.append_ns = static_cast<int64_t>(random.Below(50'000));
  if (random.Chance(0.5)) p.write_bandwidth = random.Between(50, 500) * 1'000'000;
  if (p.write_bandwidth > 0) p.write_cache = kBlock * random.Below(100);
  if (random.Chance(0.3)) p.finish_bandwidth = 1'000'000'000;
  if (random.Chance(0.5)) p.finish_padding = kBlock * random.Between(1, 1000);
  if (random.Chance(0.3)) p.reset_padding = kBlock * random.Between(1, 1000);
  if (random.Chance(0.3)) p.reset_time = {{100, 50'000}, {700, 900'000}};
  EXPECT_TRUE(ValidateProfile(p).ok()) << ValidateProfile(p).ToString();
  return p;
}

// Random commands: writes at write pointers, all other commands anywhere, with rising times that come in bursts.
std::vector<Submission> RandomCommands(const Profile& profile, Random& random) {
  std::vector<uint64_t> written(profile.zone_count);
  const uint64_t mean_gap = uint64_t{1} << random.Between(10, 20);
  std::vector<Submission> commands;
  int64_t time = 0;
  for (int i = 0; i < 300; ++i) {
    if (random.Chance(0.7)) time += static_cast<int64_t>(random.Below(2 * mean_gap));
    const auto zone = static_cast<uint32_t>(random.Below(profile.zone_count));
    uint64_t& wp = written[zone];
    const uint64_t longest = kBlock * random.Between(1, 150);
    TimingOp op{static_cast<TimingOpKind>(random.Below(8)), zone, 0, 0, wp, random.Chance(0.2)};
    if (random.Chance(0.5)) op.kind = random.Chance(0.5) ? kRead : kWrite;
    if (op.kind == kRead) {
      op.offset = kBlock * random.Below(profile.zone_capacity / kBlock);
      op.length = std::min(longest, profile.zone_capacity - op.offset);
    } else if (op.kind == kWrite || op.kind == kAppend) {
      op.offset = wp;
      op.length = std::min(longest, profile.zone_capacity - wp);
      wp += op.length;
    } else if (op.kind == kReset) {
      wp = 0;
    } else if (op.kind == kFinish) {
      wp = profile.zone_capacity;
    }
    commands.push_back({time, op});
  }
  return commands;
}

std::vector<std::pair<int64_t, uint64_t>> TimesAndTickets(const std::vector<TimingCompletion>& completed) {
  std::vector<std::pair<int64_t, uint64_t>> pairs;
  for (const TimingCompletion& completion : completed) pairs.emplace_back(completion.time_ns, completion.ticket);
  return pairs;
}

constexpr int64_t kLongAfter = 1000 * kSecondNs;

std::vector<TimingCompletion> CompletionsInOneStep(const Profile& profile, const std::vector<Submission>& commands) {
  TimingModel model(profile);
  std::vector<TimingCompletion> completed;
  for (size_t i = 0; i < commands.size(); ++i) model.Submit(commands[i].time, commands[i].op, i);
  model.AdvanceTo(kLongAfter, completed);
  return completed;
}

void CheckStepsOfAdvance(Random& random) {
  const Profile profile = RandomDevice(random);
  const std::vector<Submission> commands = RandomCommands(profile, random);
  const std::vector<TimingCompletion> expected = CompletionsInOneStep(profile, commands);
  ASSERT_EQ(expected.size(), commands.size());
  EXPECT_TRUE(std::is_sorted(expected.begin(), expected.end(),
                             [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; }));

  TimingModel model(profile);
  std::vector<TimingCompletion> completed;
  int64_t now = 0;
  for (size_t i = 0; i < commands.size(); ++i) {
    while (random.Chance(0.5)) {
      now = static_cast<int64_t>(random.Between(static_cast<uint64_t>(now), static_cast<uint64_t>(commands[i].time)));
      model.AdvanceTo(now, completed);
    }
    now = commands[i].time;
    model.Submit(now, commands[i].op, i);
  }
  while (completed.size() < commands.size()) {
    model.AdvanceTo(now += static_cast<int64_t>(random.Below(kMillisecondNs)), completed);
    ASSERT_LT(now, kLongAfter);
  }
  EXPECT_THAT(TimesAndTickets(completed), ElementsAreArray(TimesAndTickets(expected)));
}

// Runs a model from bound to bound, and remembers the latest bound that was promised for each command in flight.
class BoundChecker {
 public:
  explicit BoundChecker(const Profile& profile) : model_(profile) {}

  int64_t Ask() {
    const int64_t bound = model_.NextCompletionBound();
    for (auto& [ticket, promised] : promised_) promised = std::max(promised, bound);
    return bound;
  }
  void Submit(int64_t now, const TimingOp& op, uint64_t ticket) {
    model_.Submit(now, op, ticket);
    promised_[ticket] = 0;
  }
  void Advance(int64_t now) {
    std::vector<TimingCompletion> completed;
    model_.AdvanceTo(now, completed);
    for (const TimingCompletion& completion : completed) {
      EXPECT_GE(completion.time_ns, promised_.at(completion.ticket)) << "ticket " << completion.ticket;
      EXPECT_LE(completion.time_ns, now);
      promised_.erase(completion.ticket);
    }
    EXPECT_GT(model_.NextCompletionBound(), now) << "waiting for the bound would never end";
  }
  bool idle() const { return promised_.empty(); }

 private:
  TimingModel model_;
  std::map<uint64_t, int64_t> promised_;  // by ticket
};

void CheckBounds(Random& random) {
  const Profile profile = RandomDevice(random);
  const std::vector<Submission> commands = RandomCommands(profile, random);
  BoundChecker checker(profile);
  for (size_t i = 0; i < commands.size(); ++i) {
    for (int64_t bound = checker.Ask(); bound < commands[i].time; bound = checker.Ask()) checker.Advance(bound);
    checker.Submit(commands[i].time, commands[i].op, i);
    checker.Ask();
  }
  while (!checker.idle() && !testing::Test::HasFailure()) checker.Advance(checker.Ask());
  EXPECT_EQ(checker.Ask(), TimingModel::kNever);
}

TEST(RandomDevices, CompletionsDoNotDependOnTheStepsOfAdvance) { FromSeeds(CheckStepsOfAdvance); }

TEST(RandomDevices, NothingCompletesBeforeItsBoundWhateverComesLater) { FromSeeds(CheckBounds); }

}  // namespace
}  // namespace isozone
