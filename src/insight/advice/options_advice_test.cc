#include "insight/advice/options_advice.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace isozone {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

AdviceFacts SmallZones() {
  AdviceFacts facts;
  facts.device = "emu:ssd.img";
  facts.zones = 4096;
  facts.zone_capacity = 4 * kMiB;
  facts.max_active = 384;
  facts.groups = 32;
  facts.cores = 8;
  facts.memory = 8 * kGiB;
  facts.database = 8 * kGiB;
  return facts;
}

AdviceFacts LargeZones() {
  AdviceFacts facts = SmallZones();
  facts.zones = 904;
  facts.zone_capacity = 1077 * kMiB;
  facts.max_active = 14;
  facts.groups = 0;
  facts.database = 500 * kGiB;
  return facts;
}

OptionsAdvice Advise(const AdviceFacts& facts) {
  auto advice = AdviseOptions(facts);
  EXPECT_TRUE(advice.ok()) << advice.status().ToString();
  return advice.ok() ? *advice : OptionsAdvice{};
}

OptionSetting Find(const OptionsAdvice& advice, std::string_view key) {
  const auto found = std::ranges::find(advice.settings, key, &OptionSetting::key);
  return found == advice.settings.end() ? OptionSetting{} : *found;
}

uint64_t Number(const OptionsAdvice& advice, std::string_view key) { return std::stoull(Find(advice, key).value); }

TEST(OptionsAdviceTest, ATableFillsAStripeSetOfSmallZones) {
  const OptionsAdvice advice = Advise(SmallZones());
  EXPECT_EQ(Number(advice, "target_file_size_base"), 64 * kMiB / 32 * 31);
  EXPECT_THAT(Find(advice, "target_file_size_base").reason, HasSubstr("fills 1 stripe set of 16 zones of 4.0 MiB"));
  AdviceFacts tiny = SmallZones();
  tiny.zone_capacity = kMiB;
  tiny.zones = 16384;
  EXPECT_THAT(Find(Advise(tiny), "target_file_size_base").reason, HasSubstr("fills 4 stripe sets"));
}

TEST(OptionsAdviceTest, AWholeNumberOfTablesFillsAStripeSetOfLargeZones) {
  const OptionsAdvice advice = Advise(LargeZones());
  const uint64_t table = Number(advice, "target_file_size_base") / 31 * 32;
  EXPECT_GT(table, 60 * kMiB);
  EXPECT_LE(table, 64 * kMiB);
  // 14 active zones, of which 7 are reserved for others, and two files at once.
  EXPECT_THAT(Find(advice, "target_file_size_base").reason, HasSubstr("fill a stripe set of 3 zones of 1.1 GiB"));
  EXPECT_THAT(Find(advice, "target_file_size_base").reason, HasSubstr("not more, since two files share"));
}

TEST(OptionsAdviceTest, ALargeDatabaseHasLargerTables) {
  AdviceFacts facts = LargeZones();
  facts.zones = 20'000;
  facts.database = 10 * kTiB;
  EXPECT_GT(Number(Advise(facts), "target_file_size_base"), 400 * kMiB);
  EXPECT_LE(Number(Advise(facts), "target_file_size_base"), 512 * kMiB);
}

TEST(OptionsAdviceTest, MemtablesGoByMemoryAndWorkload) {
  AdviceFacts facts = SmallZones();
  facts.zones *= 64;
  facts.database = 400 * kGiB;
  facts.memory = 2 * kGiB;
  const auto total = [&facts](Workload workload) {
    facts.workload = workload;
    const OptionsAdvice advice = Advise(facts);
    return Number(advice, "write_buffer_size") * Number(advice, "max_write_buffer_number");
  };
  EXPECT_GT(total(Workload::kWrite), total(Workload::kMixed));
  EXPECT_GT(total(Workload::kMixed), total(Workload::kRead));
  facts.memory = 64 * kGiB;
  facts.workload = Workload::kWrite;
  EXPECT_EQ(Number(Advise(facts), "write_buffer_size"), 256 * kMiB);
  EXPECT_THAT(Find(Advise(facts), "write_buffer_size").reason, HasSubstr("not more, since a flush of more"));
}

TEST(OptionsAdviceTest, ASmallDatabaseHasNoSmallerMemtablesThanByDefault) {
  AdviceFacts facts = SmallZones();
  facts.database = 256 * kMiB;
  EXPECT_EQ(Number(Advise(facts), "write_buffer_size"), 64 * kMiB);
}

TEST(OptionsAdviceTest, WritersCompactMoreOfLevel0AtOnceIfThereIsRoom) {
  AdviceFacts facts = SmallZones();
  facts.database = 1 * kGiB;
  EXPECT_EQ(Number(Advise(facts), "level0_file_num_compaction_trigger"), 16U);
  EXPECT_EQ(Number(Advise(facts), "level0_slowdown_writes_trigger"), 40U);
  EXPECT_EQ(Number(Advise(facts), "level0_stop_writes_trigger"), 72U);
  facts.cores = 2;
  EXPECT_EQ(Number(Advise(facts), "max_bytes_for_level_base"), 16 * Number(Advise(facts), "write_buffer_size"));
  facts.database = 12 * kGiB;
  EXPECT_EQ(Number(Advise(facts), "level0_file_num_compaction_trigger"), 8U);
  EXPECT_THAT(Find(Advise(facts), "level0_file_num_compaction_trigger").reason, HasSubstr("inputs and outputs"));
  EXPECT_THAT(Find(Advise(facts), "level0_slowdown_writes_trigger").value, IsEmpty());
  facts.workload = Workload::kRead;
  facts.database = 8 * kGiB;
  EXPECT_THAT(Find(Advise(facts), "level0_file_num_compaction_trigger").value, IsEmpty());
}

TEST(OptionsAdviceTest, JobsGoByCoresGroupsAndActiveZones) {
  AdviceFacts facts = SmallZones();
  EXPECT_EQ(Number(Advise(facts), "max_background_jobs"), 8U);
  facts.cores = 1;
  EXPECT_EQ(Number(Advise(facts), "max_background_jobs"), 2U);
  EXPECT_THAT(Find(Advise(facts), "max_background_jobs").reason, HasSubstr("not less, so that a flush"));
  facts.cores = 8;
  facts.groups = 4;
  EXPECT_EQ(Number(Advise(facts), "max_background_jobs"), 4U);
  EXPECT_THAT(Find(Advise(facts), "max_background_jobs").reason, HasSubstr("there are 4 zone groups"));
  facts.groups = 32;
  facts.max_active = 10;
  EXPECT_EQ(Number(Advise(facts), "max_background_jobs"), 3U);
  EXPECT_THAT(Find(Advise(facts), "max_background_jobs").reason, HasSubstr("so many zones can be active"));
}

TEST(OptionsAdviceTest, WritersAreSteeredAndReadersAreNot) {
  AdviceFacts facts = SmallZones();
  facts.database = 11 * kGiB;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{id=isozone;compaction=isozone}");
  EXPECT_EQ(Find(Advise(facts), "compaction_style").value, "kCompactionStyleNone");
  AdviceFacts few_active = LargeZones();
  few_active.database = few_active.capacity() / 10 * 7;
  EXPECT_EQ(Find(Advise(few_active), "listeners").value, "{id=isozone;compaction=isozone;t_zone=false}");
  facts.workload = Workload::kRead;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{isozone}");
  EXPECT_THAT(Find(Advise(facts), "compaction_style").value, IsEmpty());
}

TEST(OptionsAdviceTest, FewJobsAreSteeredHoweverMuchRoomThereIs) {
  AdviceFacts facts = SmallZones();
  facts.cores = 3;
  for (const uint64_t gib : {1, 2, 4, 6, 10, 11}) {
    facts.database = gib * kGiB;
    EXPECT_EQ(Find(Advise(facts), "listeners").value, "{id=isozone;compaction=isozone}") << gib;
  }
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, HasSubstr("before the device is full"));
  facts.database = 4 * kGiB;
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, Not(HasSubstr("before the device is full")));
}

TEST(OptionsAdviceTest, SeveralCompactionsAtATimeAreSteeredSoonerWhereTheyKeepUpLessWell) {
  AdviceFacts facts = SmallZones();
  facts.database = facts.capacity() / 100 * 45;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{isozone}");
  AdviceFacts of_four_jobs = facts;
  of_four_jobs.cores = 4;
  EXPECT_EQ(Find(Advise(of_four_jobs), "listeners").value, "{id=isozone;compaction=isozone}");
  AdviceFacts of_small_memtables = facts;
  of_small_memtables.memory = 256 * kMiB;
  EXPECT_EQ(Find(Advise(of_small_memtables), "listeners").value, "{id=isozone;compaction=isozone}");
}

TEST(OptionsAdviceTest, WhatFilesCannotHaveIsNoRoom) {
  AdviceFacts facts = SmallZones();
  facts.database = 4 * kGiB;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{isozone}");
  facts.room = 7 * kGiB;
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, HasSubstr("before the device is full"));
}

TEST(OptionsAdviceTest, SeveralCompactionsAtATimeAreLeftToRocksDb) {
  AdviceFacts facts = SmallZones();
  facts.zones = 256 * 1024;
  facts.database = 100 * kGiB;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{isozone}");
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, HasSubstr("several compactions at a time"));
  facts.cores = 3;
  EXPECT_EQ(Find(Advise(facts), "listeners").value, "{id=isozone;compaction=isozone}");
}

TEST(OptionsAdviceTest, SeveralCompactionsAtATimeAreSteeredOnlyBeforeTheDeviceIsFull) {
  AdviceFacts facts = SmallZones();
  for (const uint64_t percent : {5, 15, 33, 40, 49}) {
    facts.database = facts.capacity() / 100 * percent + facts.capacity() / 200;
    EXPECT_EQ(Find(Advise(facts), "listeners").value, "{isozone}") << percent;
  }
  facts.database = facts.capacity() / 100 * 51;
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, HasSubstr("before the device is full"));
  facts.database = 0;  // 60 % of it is supposed
  EXPECT_THAT(Find(Advise(facts), "listeners").reason, HasSubstr("before the device is full"));
}

TEST(OptionsAdviceTest, SeveralCompactionsAtATimeAreLeftToRocksDbOnCrowdedDevicesThatAreLargeBesideLevel0) {
  AdviceFacts facts = SmallZones();
  facts.zones = 8192;
  facts.memory = 1 * kGiB;
  const auto at = [&facts](uint64_t percent) {
    facts.database = facts.capacity() / 100 * percent + facts.capacity() / 200;
    return Advise(facts);
  };
  EXPECT_EQ(Find(at(55), "listeners").value, "{isozone}");
  EXPECT_EQ(Number(at(40), "level0_file_num_compaction_trigger"), 16U);
  EXPECT_EQ(Number(at(55), "level0_file_num_compaction_trigger"), 14U);
  EXPECT_EQ(Number(at(55), "level0_slowdown_writes_trigger"), 35U);
  const uint64_t room = facts.capacity() - facts.database / 10 * 12;
  EXPECT_EQ(Number(at(55), "soft_pending_compaction_bytes_limit"), 4 * room);
  EXPECT_EQ(Find(at(61), "listeners").value, "{id=isozone;compaction=isozone}") << "more than was tried";
  facts.memory = 8 * kGiB;  // larger memtables, so that level 0 is larger
  EXPECT_EQ(Find(at(55), "listeners").value, "{id=isozone;compaction=isozone}");
}

// Steered compaction does not fill the device as long as twice level 0 and 1, and logs, are at most 9/5 of the room.
TEST(OptionsAdviceTest, MemtablesAndLevel0AreSmallWhereRoomIsShort) {
  AdviceFacts facts = SmallZones();
  facts.cores = 2;
  for (const uint64_t percent : {50, 60, 70, 75, 80}) {
    facts.database = facts.capacity() / 100 * percent;
    const OptionsAdvice advice = Advise(facts);
    const uint64_t memtable = Number(advice, "write_buffer_size");
    const uint64_t level0 = Number(advice, "level0_file_num_compaction_trigger") * memtable;
    const uint64_t logs = Number(advice, "max_write_buffer_number") * memtable;
    const uint64_t room = facts.capacity() - facts.database / 10 * 12;
    EXPECT_LE(level0, Number(advice, "max_bytes_for_level_base")) << percent;
    EXPECT_LE(4 * level0 + logs, room / 5 * 9) << percent;
    EXPECT_GE(level0, 8 * memtable) << percent;
  }
}

TEST(OptionsAdviceTest, SeveralCompactionsAtATimeHaveASmallerLevel1AndMayOweMore) {
  AdviceFacts facts = SmallZones();
  facts.database = 5 * kGiB;
  const OptionsAdvice several = Advise(facts);
  const uint64_t level0 = Number(several, "write_buffer_size") * 16;
  EXPECT_EQ(Number(several, "level0_file_num_compaction_trigger"), 13U);  // a third of the room
  EXPECT_EQ(Number(several, "max_bytes_for_level_base"), level0 / 16 * 13 / 2);
  EXPECT_EQ(Number(several, "soft_pending_compaction_bytes_limit") / kMiB, 20 * kGiB / kMiB);
  EXPECT_EQ(Number(several, "hard_pending_compaction_bytes_limit") / kMiB, 30 * kGiB / kMiB);
  facts.cores = 3;
  facts.database = 4 * kGiB;
  const OptionsAdvice few = Advise(facts);
  EXPECT_EQ(Number(few, "max_bytes_for_level_base"), level0);
  EXPECT_EQ(Number(few, "soft_pending_compaction_bytes_limit"), facts.capacity() - facts.database / 10 * 12);
}

TEST(OptionsAdviceTest, WhereTheAdviceGainsLessANoteSaysSo) {
  AdviceFacts facts = SmallZones();
  facts.database = 5 * kGiB;
  EXPECT_THAT(Advise(facts).notes, IsEmpty());
  facts.database = 10 * kGiB;
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("up to a third slower than with RocksDB's defaults")));
  facts.workload = Workload::kRead;
  EXPECT_THAT(Advise(facts).notes, IsEmpty());
}

TEST(OptionsAdviceTest, DebtIsBoundedByTheRoomOnSmallDevicesAlone) {
  AdviceFacts facts = SmallZones();
  facts.cores = 3;
  facts.database = 5 * kGiB;
  EXPECT_EQ(Number(Advise(facts), "soft_pending_compaction_bytes_limit") / kMiB, 10 * kGiB / kMiB);
  EXPECT_EQ(Number(Advise(facts), "hard_pending_compaction_bytes_limit") / kMiB, 15 * kGiB / kMiB);
  facts.database = 12 * kGiB;
  EXPECT_EQ(Number(Advise(facts), "soft_pending_compaction_bytes_limit"), 2 * kGiB);
  EXPECT_EQ(Number(Advise(facts), "hard_pending_compaction_bytes_limit"), 4 * kGiB);
  EXPECT_THAT(Find(Advise(LargeZones()), "soft_pending_compaction_bytes_limit").value, IsEmpty());
}

TEST(OptionsAdviceTest, LimitsAreNoted) {
  AdviceFacts facts = SmallZones();
  facts.database = 5 * kGiB;
  EXPECT_THAT(Advise(facts).notes, IsEmpty());
  facts.zone_capacity = 256 * kKiB;
  facts.database = 512 * kMiB;
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("tiny")));
  EXPECT_THAT(Advise(LargeZones()).notes, Contains(HasSubstr("Only 14 zones can be active")));
  facts = SmallZones();
  facts.groups.reset();
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("isozone izg identify")));
  facts = SmallZones();
  facts.database = 12 * kGiB;
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("takes 75 % of the device")));
  facts.database = 200 * kMiB;
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("steered compaction")));
  facts = LargeZones();
  facts.zones = 32;
  facts.database = 10 * kGiB;
  EXPECT_THAT(Advise(facts).notes, Contains(HasSubstr("only 32 zones")));
}

TEST(OptionsAdviceTest, ADeviceThatIsTooSmallIsRefused) {
  AdviceFacts facts = SmallZones();
  facts.zones = 40;
  facts.zone_capacity = 64 * kKiB;
  facts.database = 0;
  EXPECT_TRUE(AdviseOptions(facts).status().Is(StatusCode::kInvalidArgument));
}

TEST(OptionsAdviceTest, ADatabaseFitsIntoWhatFilesCanTake) {
  AdviceFacts facts = SmallZones();
  facts.database = facts.capacity() / 100 * 75;
  EXPECT_TRUE(AdviseOptions(facts).ok());
  facts.room = facts.capacity() / 100 * 90;
  EXPECT_TRUE(AdviseOptions(facts).status().Is(StatusCode::kInvalidArgument));
}

TEST(OptionsAdviceTest, NotesSpeakOfTheStripesThatThereWillBe) {
  AdviceFacts facts = SmallZones();
  facts.max_active = 14;
  facts.database = 64 * kMiB;
  const std::vector<std::string> notes = Advise(facts).notes;
  EXPECT_THAT(notes, Contains(HasSubstr("14 zones can be active")));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("stripe_width=4"))));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("stripes of 16"))));
}

TEST(OptionsAdviceTest, LittleMemoryBoundsWhatIsozoneTakes) {
  AdviceFacts facts = SmallZones();
  facts.memory = 256 * kMiB;
  const OptionsAdvice advice = Advise(facts);
  EXPECT_EQ(advice.uri, "writer_memory=3M&read_ahead_memory=32M");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("little memory")));
  EXPECT_THAT(advice.notes, Contains(HasSubstr("are smaller than RocksDB's own of 64.0 MiB")));
  EXPECT_THAT(OptionsFileText(advice), HasSubstr("# In the URI of the device: writer_memory=3M"));
}

TEST(OptionsAdviceTest, WhatCannotBeIsRefusedInOneLine) {
  AdviceFacts facts = SmallZones();
  facts.database = 14 * kGiB;
  EXPECT_THAT(AdviseOptions(facts).status().ToString(), HasSubstr("14.0 GiB does not fit: emu:ssd.img has 16.0 GiB"));
  facts = SmallZones();
  facts.memory = 16 * kMiB;
  EXPECT_THAT(AdviseOptions(facts).status().ToString(), HasSubstr("at least 32.0 MiB of memory"));
  facts = SmallZones();
  facts.zones = 0;
  EXPECT_THAT(AdviseOptions(facts).status().ToString(), HasSubstr("has no zones"));
  EXPECT_THAT(ParseWorkload("writes").status().ToString(), HasSubstr("unknown workload 'writes'; known: write"));
  EXPECT_EQ(*ParseWorkload("mixed"), Workload::kMixed);
}

TEST(OptionsAdviceTest, EverythingFitsWhateverTheDevice) {
  constexpr uint64_t kSeed = 24;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int round = 0; round < 5000; ++round) {
    AdviceFacts facts = SmallZones();
    facts.zones = static_cast<uint32_t>(random.Between(16, 40'000));
    facts.zone_capacity = random.Between(1, 512 * 1024) * 4096;
    facts.max_active = random.Chance(0.3) ? 0 : static_cast<uint32_t>(random.Between(9, 400));
    if (random.Chance(0.3)) facts.groups.reset();
    facts.cores = static_cast<uint32_t>(random.Between(1, 128));
    facts.memory = random.Between(kLeastAdvisedMemory, 64 * kGiB);
    facts.database = random.Chance(0.3) ? 0 : random.Between(1, facts.capacity() / 2);
    facts.workload = static_cast<Workload>(random.Below(3));
    const OptionsAdvice advice = Advise(facts);
    ASSERT_THAT(advice.notes, Not(Contains(HasSubstr("\n"))));
    const uint64_t memtables = Number(advice, "write_buffer_size") * Number(advice, "max_write_buffer_number");
    ASSERT_LE(memtables + Number(advice, "block_cache"), facts.memory) << OptionsFileText(advice);
    ASSERT_GE(Number(advice, "write_buffer_size"), 2 * kMiB);
    ASSERT_GT(Number(advice, "target_file_size_base"), 0U);
    ASSERT_GE(Number(advice, "max_bytes_for_level_base"), Number(advice, "target_file_size_base"));
    for (const OptionSetting& setting : advice.settings) {
      ASSERT_THAT(setting.reason, ::testing::EndsWith(".")) << setting.key;
      ASSERT_THAT(setting.reason, Not(HasSubstr("\n"))) << setting.key;
    }
  }
}

}  // namespace
}  // namespace isozone
