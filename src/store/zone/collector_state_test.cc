#include "store/zone/collector_state.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isozone {
namespace {

using Kind = CollectorStep::Kind;
using testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;

// Chooses all candidates in the given order while less than half of the space is free.
class PlainScheme final : public GcScheme {
 public:
  std::string_view name() const override { return "plain"; }
  int64_t interval_ns() const override { return kSecond; }
  bool automatic() const override { return collects; }
  bool writers_wait() const override { return waited_for; }
  bool decides_again() const override { return again; }
  double Urgency(const GcSpace& space) const override { return space.wanted ? 1 : urgency; }
  bool Due(const GcSpace& space) const override { return space.free_percent() < 50; }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    std::vector<ZoneId> zones;
    for (const GcCandidate& candidate : candidates) zones.push_back(candidate.zone);
    return zones;
  }

  bool collects = true;
  bool waited_for = true;
  bool again = true;
  double urgency = 0.5;

 protected:
  std::vector<ZoneId> Choose(const GcSpace& /*space*/, std::span<const GcCandidate> candidates) const override {
    return Order(candidates);
  }
};

GcSpace Space(uint32_t free_percent, uint32_t empty_zones = 2, bool wanted = false) {
  return {.zones = 100, .empty_zones = empty_zones, .capacity = 100, .free = free_percent, .wanted = wanted};
}

std::vector<GcCandidate> Zones(const std::vector<uint32_t>& ids) {
  std::vector<GcCandidate> zones;
  for (const uint32_t id : ids) {
    zones.push_back({.zone = ZoneId(id), .valid = 10 + id, .written = 1000, .capacity = 1000, .data = {}});
  }
  return zones;
}

class CollectorStateTest : public testing::Test {
 protected:
  CollectorStateTest() : scheme_(std::make_shared<PlainScheme>()), state_(scheme_, 4) { EXPECT_TRUE(state_.Start()); }

  Kind Next() { return state_.Next(now_ns_).kind; }
  Kind NextInRound() { return state_.NextInRound(now_ns_).kind; }
  // Begins a round, of the collector's own or asked for, and runs it up to its first look.
  void BeginRound() {
    state_.Wake();
    ASSERT_EQ(Next(), Kind::kBegin);
    ASSERT_EQ(NextInRound(), Kind::kLook);
  }
  void BeginAsked(double free_percent) {
    state_.Ask();
    ASSERT_TRUE(state_.BeginAsked(free_percent));
    ASSERT_EQ(NextInRound(), Kind::kResetDead);
    ASSERT_EQ(NextInRound(), Kind::kLook);
  }
  // From a look on, runs to the step that says what to copy.
  CollectorStep Choose(const GcSpace& space, const std::vector<uint32_t>& candidates) {
    state_.SpaceIs(space, now_ns_);
    EXPECT_EQ(NextInRound(), Kind::kList);
    state_.CandidatesAre(Zones(candidates));
    return state_.NextInRound(now_ns_);
  }
  std::vector<uint32_t> Victims(const GcSpace& space, const std::vector<uint32_t>& candidates) {
    const CollectorStep step = Choose(space, candidates);
    std::vector<uint32_t> ids;
    for (const ZoneId zone : step.victims) ids.push_back(zone.value());
    return ids;
  }
  void EndBatch(uint64_t reclaimed, std::vector<ZoneId> failed = {}, std::vector<ZoneId> skipped = {}) {
    CollectorState::Batch batch;
    batch.bytes_reclaimed = reclaimed;
    batch.failed = failed;
    batch.skipped = skipped;
    state_.BatchEnded(batch);
  }
  void EndBatchWithError(bool broken) {
    CollectorState::Batch batch;
    batch.error = true;
    batch.broken = broken;
    state_.BatchEnded(batch);
  }
  // Ends a round that is over, and returns whether it gained something.
  bool EndRound() {
    const CollectorStep step = state_.NextInRound(now_ns_);
    EXPECT_EQ(step.kind, Kind::kEnd);
    state_.EndRound();
    return step.gained;
  }
  // Runs a round that finds nothing to do.
  void IdleRound() {
    BeginRound();
    state_.SpaceIs(Space(90), now_ns_);
    EXPECT_FALSE(EndRound());
  }

  const std::shared_ptr<PlainScheme> scheme_;
  CollectorState state_;
  int64_t now_ns_ = 5;
};

// --- When to look ---

TEST_F(CollectorStateTest, LooksWhenTheIntervalOfTheSchemeHasPassed) {
  const CollectorStep first = state_.Next(now_ns_);
  EXPECT_EQ(first.kind, Kind::kWait);
  EXPECT_EQ(first.until_ns, now_ns_ + kSecond);
  now_ns_ = first.until_ns - 1;
  EXPECT_EQ(Next(), Kind::kWait) << "an early waking changes nothing";
  now_ns_ = first.until_ns;
  EXPECT_EQ(Next(), Kind::kBegin);
  EXPECT_TRUE(state_.working());
}

TEST_F(CollectorStateTest, WhoeverWaitsForSpaceHasARoundThatBeginsAfterHeCame) {
  BeginRound();
  state_.Wake();  // the round under way may have looked already
  state_.SpaceIs(Space(90), now_ns_);
  EXPECT_FALSE(EndRound());
  EXPECT_EQ(Next(), Kind::kBegin);
  state_.EndRound();
  EXPECT_EQ(Next(), Kind::kWait) << "and one is enough";
}

TEST_F(CollectorStateTest, NothingIsCollectedByASchemeThatDoesNot) {
  scheme_->collects = false;
  state_.Wake();
  EXPECT_EQ(Next(), Kind::kWait);
  now_ns_ += 10 * kSecond;
  EXPECT_EQ(Next(), Kind::kWait);
  EXPECT_FALSE(state_.working());
}

TEST_F(CollectorStateTest, AnotherSchemeLooksAtOnce) {
  EXPECT_EQ(Next(), Kind::kWait);
  state_.Change(std::make_shared<PlainScheme>(), 1);
  EXPECT_EQ(Next(), Kind::kBegin);
}

TEST_F(CollectorStateTest, AfterARoundThatGainedItGoesOnWhileThereIsNeed) {
  struct Case {
    std::string what;
    bool decides_again;
    GcSpace space;
    bool goes_on;
  };
  const std::vector<Case> cases = {
      {"somebody waits", false, Space(90, 2, true), true},
      {"somebody waits, and it is due", true, Space(10, 2, true), true},
      {"it is due", true, Space(10), true},
      {"it is due, and the scheme decides when it looks", false, Space(10), false},
      {"enough is free", true, Space(90), false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    scheme_->again = c.decides_again;
    BeginRound();
    EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
    EndBatch(7);
    if (c.decides_again) {
      EXPECT_EQ(NextInRound(), Kind::kLook);
      state_.SpaceIs(Space(90), now_ns_);
    }
    EXPECT_TRUE(EndRound());
    EXPECT_EQ(Next(), Kind::kLook);
    state_.Consider(c.space);
    EXPECT_EQ(Next(), c.goes_on ? Kind::kBegin : Kind::kWait);
    if (c.goes_on) state_.EndRound();
  }
}

// --- Batches ---

TEST_F(CollectorStateTest, AsManyAreCopiedTogetherAsPayForThemselves) {
  struct Case {
    uint32_t empty_zones;
    size_t together;
  };
  for (const Case& c : {Case{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {7, 3}, {8, 4}, {100, 4}}) {
    SCOPED_TRACE(c.empty_zones);
    BeginRound();
    EXPECT_EQ(Victims(Space(10, c.empty_zones), {1, 2, 3, 4, 5, 6}).size(), c.together);
    EndBatchWithError(/*broken=*/false);
    EXPECT_FALSE(EndRound());
  }
}

TEST_F(CollectorStateTest, DecidesAgainAfterEachBatch) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1, 2, 3}), ElementsAre(1));
  EndBatch(7);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  EXPECT_THAT(Victims(Space(10), {3, 2}), ElementsAre(3));
  EndBatch(7);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(50), now_ns_);
  EXPECT_TRUE(EndRound());
}

TEST_F(CollectorStateTest, WhoDecidesOnceHasAllOfItCollectedInBatches) {
  scheme_->again = false;
  BeginRound();
  EXPECT_THAT(Victims(Space(10, 4), {1, 2, 3}), ElementsAre(1, 2));
  EndBatch(7);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(90), now_ns_);
  const CollectorStep second = state_.NextInRound(now_ns_);
  EXPECT_THAT(second.victims, ElementsAre(ZoneId(3))) << "whatever is free by then";
  EndBatch(7);
  EXPECT_TRUE(EndRound());
}

TEST_F(CollectorStateTest, ARoundEndsAfterSoManyBatchesThatGained) {
  BeginRound();
  for (uint32_t batch = 1; batch <= CollectorState::kMostBatches; ++batch) {
    EXPECT_THAT(Victims(Space(10), {batch}), ElementsAre(batch));
    EndBatch(7);
    EXPECT_EQ(NextInRound(), batch < CollectorState::kMostBatches ? Kind::kLook : Kind::kEnd);
  }
  EXPECT_TRUE(EndRound());
}

TEST_F(CollectorStateTest, ADecisionIsSupersededOnceSomethingWasGained) {
  const std::vector<std::pair<std::string, std::function<void()>>> events = {
      {"somebody asks", [&] { state_.Ask(); }},
      {"another scheme", [&] { state_.Change(std::make_shared<PlainScheme>(), 4); }},
  };
  for (const auto& [what, event] : events) {
    SCOPED_TRACE(what);
    BeginRound();
    EXPECT_THAT(Victims(Space(10), {1, 2}), ElementsAre(1));
    event();
    EndBatch(0, {}, {ZoneId(1)});
    EXPECT_EQ(NextInRound(), Kind::kLook) << "what could not be moved makes way for the next choice";
    EXPECT_THAT(Victims(Space(10), {1, 2}), ElementsAre(2));
    EndBatch(7);
    EXPECT_TRUE(EndRound());
    if (what == "somebody asks") {
      EXPECT_TRUE(state_.BeginAsked(100));
      state_.EndRound();
    }
    EXPECT_EQ(Next(), Kind::kLook);
    state_.Consider(Space(90));
  }
}

TEST_F(CollectorStateTest, AnErrorEndsTheRound) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1, 2}), ElementsAre(1));
  EndBatchWithError(/*broken=*/false);
  EXPECT_FALSE(EndRound());
  EXPECT_TRUE(state_.attached());
  EXPECT_EQ(Next(), Kind::kWait);
}

TEST_F(CollectorStateTest, WhereFilesCannotBeMovedItGivesUpForGood) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1, 2}), ElementsAre(1));
  EndBatchWithError(/*broken=*/true);
  EXPECT_FALSE(state_.attached());
  EXPECT_FALSE(EndRound());
  state_.Wake();
  EXPECT_EQ(Next(), Kind::kWait);
  state_.Change(std::make_shared<PlainScheme>(), 4);
  EXPECT_EQ(Next(), Kind::kWait);
  EXPECT_FALSE(state_.attached());
}

// --- Zones to avoid ---

TEST_F(CollectorStateTest, WhatCouldNotBeMovedIsTriedInTheNextRound) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
  EndBatch(0, {}, {ZoneId(1)});
  EXPECT_EQ(NextInRound(), Kind::kLook);
  EXPECT_EQ(Choose(Space(10), {1}).kind, Kind::kEnd);
  EXPECT_FALSE(EndRound());
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
}

TEST_F(CollectorStateTest, AZoneThatCouldNotBeReadIsTriedAgainAfterManyRounds) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
  EndBatch(0, {ZoneId(1)});
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(90), now_ns_);
  EXPECT_FALSE(EndRound());
  for (uint64_t round = 1; round < CollectorState::kAvoidRounds; ++round) {
    BeginRound();
    ASSERT_EQ(Choose(Space(10), {1}).kind, Kind::kEnd) << round;
    EXPECT_FALSE(EndRound());
    std::vector<GcCandidate> candidates = Zones({1, 2});
    state_.RemoveAvoided(candidates);
    ASSERT_EQ(candidates.size(), 1u);
  }
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
}

// --- Pace ---

TEST_F(CollectorStateTest, RestsInProportionToTheWindow) {
  struct Case {
    double urgency;
    int64_t took_ns;
    int64_t rest_ns;
  };
  const std::vector<Case> cases = {
      {1, 1000, 0},
      {0.5, 1000, 1000},
      {0.25, 1000, 3000},
      {0.05, 1'000'000, 19'000'000},
      {0.5, 0, 0},
      {0.5, CollectorState::kLongestRestNs, CollectorState::kLongestRestNs},
      {0.5, CollectorState::kLongestRestNs + 1, CollectorState::kLongestRestNs},
      {0.05, 3600 * kSecond, CollectorState::kLongestRestNs},
      {1e-300, 3600 * kSecond, CollectorState::kLongestRestNs},
  };
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.urgency);
    scheme_->urgency = c.urgency;
    now_ns_ += c.took_ns;
    state_.WindowEnded(now_ns_, /*cut=*/false);
    EXPECT_EQ(NextInRound(), Kind::kLook);
    state_.SpaceIs(Space(10), now_ns_);
    EXPECT_EQ(state_.urgency(), c.urgency);
    if (c.rest_ns > 0) {
      const CollectorStep rest = state_.NextInRound(now_ns_);
      EXPECT_EQ(rest.kind, Kind::kRest);
      EXPECT_EQ(rest.until_ns, now_ns_ + c.rest_ns);
      now_ns_ = rest.until_ns - 1;
      EXPECT_EQ(NextInRound(), Kind::kRest);
      now_ns_ = rest.until_ns;
    }
    EXPECT_EQ(NextInRound(), Kind::kGoOn);
  }
}

TEST_F(CollectorStateTest, EventsEndARest) {
  struct Case {
    std::string what;
    std::function<void()> event;
    Kind then;
  };
  const std::vector<Case> cases = {
      {"nothing", [] {}, Kind::kRest},
      {"somebody waits for space", [&] { state_.Wake(); }, Kind::kGoOn},
      {"somebody is held up", [&] { state_.Hurry(); }, Kind::kGoOn},
      {"another scheme", [&] { state_.Change(scheme_, 4); }, Kind::kGoOn},
      {"somebody asks", [&] { state_.Ask(); }, Kind::kGoOn},
      {"it is stopped", [&] { state_.Stop(); }, Kind::kCease},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    state_ = CollectorState(scheme_, 4);
    BeginRound();
    EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
    now_ns_ += 1000;
    state_.WindowEnded(now_ns_, /*cut=*/false);
    EXPECT_EQ(NextInRound(), Kind::kLook);
    state_.SpaceIs(Space(10), now_ns_);
    EXPECT_EQ(NextInRound(), Kind::kRest);
    c.event();
    EXPECT_EQ(NextInRound(), c.then);
  }
}

TEST_F(CollectorStateTest, WhoHastenedBeforeTheWindowEndedIsInTheSpace) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1}), ElementsAre(1));
  state_.Wake();
  now_ns_ += 1000;
  state_.WindowEnded(now_ns_, /*cut=*/false);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(10, 2, /*wanted=*/false), now_ns_);
  EXPECT_EQ(NextInRound(), Kind::kRest) << "he has gone again";
}

// --- Rounds that a thread asks for ---

TEST_F(CollectorStateTest, WhoAsksGetsAllInTheOrderOfTheScheme) {
  BeginAsked(100);
  const CollectorStep first = Choose(Space(90, 4), {3, 1, 2});
  EXPECT_THAT(first.victims, ElementsAre(ZoneId(3), ZoneId(1)));
  EXPECT_EQ(first.bytes_to_copy, 36u) << "of all three";
  EXPECT_EQ(state_.urgency(), 1);
  now_ns_ += 1000;
  state_.WindowEnded(now_ns_, /*cut=*/false);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(90), now_ns_);
  EXPECT_EQ(NextInRound(), Kind::kGoOn) << "without a rest";
  EndBatch(7);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(90, 4), now_ns_);
  const CollectorStep second = state_.NextInRound(now_ns_);
  EXPECT_THAT(second.victims, ElementsAre(ZoneId(2)));
  EndBatch(7);
  EXPECT_TRUE(EndRound());
  EXPECT_EQ(Next(), Kind::kWait) << "only a round by itself goes on by itself";
  EXPECT_EQ(state_.urgency(), 0);
}

TEST_F(CollectorStateTest, WhoAsksIsServedUntilSoMuchIsFree) {
  BeginAsked(20);
  state_.SpaceIs(Space(20), now_ns_);
  EXPECT_TRUE(EndRound()) << "what was not tried is not hopeless";
  BeginAsked(20);
  EXPECT_THAT(Victims(Space(19), {1, 2}), ElementsAre(1));
  state_.WindowEnded(now_ns_, /*cut=*/false);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(20), now_ns_);
  EXPECT_EQ(NextInRound(), Kind::kCease);
  EndBatch(0);
  EXPECT_TRUE(EndRound());
}

TEST_F(CollectorStateTest, WhoAskedMayHaveEnough) {
  BeginAsked(100);
  EXPECT_THAT(Victims(Space(19), {1, 2}), ElementsAre(1));
  state_.WindowEnded(now_ns_, /*cut=*/true);
  EXPECT_EQ(NextInRound(), Kind::kLook);
  state_.SpaceIs(Space(19), now_ns_);
  EXPECT_EQ(NextInRound(), Kind::kCease);
  EndBatch(0);
  EXPECT_TRUE(EndRound());
}

TEST_F(CollectorStateTest, WhoAskedForAllAndGotNothingSaysSo) {
  BeginAsked(100);
  EXPECT_THAT(Victims(Space(19), {1}), ElementsAre(1));
  EndBatch(0, {ZoneId(1)});
  EXPECT_FALSE(EndRound()) << "it has tried all that there is, once";
}

TEST_F(CollectorStateTest, OneRoundAtATime) {
  BeginAsked(100);
  state_.Wake();
  const CollectorStep step = state_.Next(now_ns_);
  EXPECT_EQ(step.kind, Kind::kWait);
  EXPECT_EQ(step.until_ns, CollectorState::kForever);
  state_.EndRound();
  EXPECT_EQ(Next(), Kind::kBegin);
}

// --- Stopping ---

TEST_F(CollectorStateTest, NothingBeginsAfterStop) {
  EXPECT_TRUE(state_.attached());
  state_.Stop();
  EXPECT_FALSE(state_.attached());
  EXPECT_EQ(Next(), Kind::kQuit);
  state_.Ask();
  EXPECT_FALSE(state_.BeginAsked(100));
  EXPECT_FALSE(state_.working());
  EXPECT_FALSE(state_.Start());
}

TEST_F(CollectorStateTest, AStopEndsTheRoundWithItsBatch) {
  BeginRound();
  EXPECT_THAT(Victims(Space(10), {1, 2}), ElementsAre(1));
  state_.Stop();
  EndBatch(7);
  EXPECT_TRUE(EndRound());
  EXPECT_EQ(Next(), Kind::kQuit);
}

TEST_F(CollectorStateTest, WritersWaitForACollectorThatMayHelp) {
  const CollectorState not_started(scheme_, 1);
  EXPECT_FALSE(not_started.attached());
  EXPECT_TRUE(state_.attached());
  scheme_->waited_for = false;
  EXPECT_FALSE(state_.attached());
  scheme_->waited_for = true;
  scheme_->collects = false;
  EXPECT_FALSE(state_.attached());
}

}  // namespace
}  // namespace isozone
