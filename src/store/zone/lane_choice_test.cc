#include "store/zone/lane_choice.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using Kind = LaneDecision::Kind;
using State = LaneView::State;

// A lane from a character. f: free; b: busy; r: retired. The others are free, and their last write has filled a unit;
// k: the flash keeps up; 3 and 5: it does not, and has so many units to program.
LaneView ViewOf(char c) {
  switch (c) {
    case 'b':
      return {.state = State::kBusy};
    case 'r':
      return {.state = State::kRetired};
    case 'k':
      return {.unit_ended = true};
    case '3':
      return {.unit_ended = true, .keeps_up = false, .backlog_ns = 3};
    case '5':
      return {.unit_ended = true, .keeps_up = false, .backlog_ns = 5};
    default:
      return {};
  }
}

std::vector<LaneView> ViewsOf(const std::string& lanes) {
  std::vector<LaneView> views;
  for (const char c : lanes) views.push_back(ViewOf(c));
  return views;
}

TEST(LaneChoice, Table) {
  struct Case {
    std::string lanes;
    size_t last;
    LaneWish wish;
    bool may_widen;
    LaneDecision wanted;
  };
  const LaneDecision widen{Kind::kWiden};
  const LaneDecision open{Kind::kOpen};
  const LaneDecision wait{Kind::kWait};
  const auto use = [](size_t lane) { return LaneDecision{Kind::kUse, lane}; };
  const LaneWish turn = LaneWish::kInTurn;
  const LaneWish spread = LaneWish::kSpread;
  const LaneWish keep = LaneWish::kKeep;
  const std::vector<Case> cases = {
      // The first lane is opened, whatever the wish.
      {"", 0, turn, false, open},
      {"", 0, spread, false, open},
      {"", 0, keep, false, open},
      {"r", 0, turn, false, open},
      {"rr", 1, keep, false, open},
      {"r", 0, keep, true, widen},

      // In turn: the next free lane behind the last, and a new one only if none is free.
      {"f", 0, turn, true, use(0)},
      {"fff", 0, turn, true, use(1)},
      {"fff", 2, turn, true, use(0)},
      {"fbf", 0, turn, true, use(2)},
      {"fbb", 0, turn, true, use(0)},
      {"frf", 0, turn, true, use(2)},
      {"bbb", 1, turn, true, widen},
      {"bbb", 1, turn, false, wait},
      {"brb", 1, turn, false, wait},

      // Spread: a new lane as long as one is allowed.
      {"fff", 0, spread, true, widen},
      {"fff", 0, spread, false, use(1)},
      {"bbf", 2, spread, false, use(2)},
      {"bb", 0, spread, true, widen},
      {"bb", 0, spread, false, wait},

      // Keep: the last lane, or the one before it.
      {"fff", 1, keep, true, use(1)},
      {"fbf", 1, keep, true, use(0)},
      {"bff", 0, keep, true, use(2)},
      {"bb", 0, keep, true, widen},
      {"bb", 0, keep, false, wait},
      {"fkf", 1, keep, true, use(1)},

      // Keep, but the flash does not keep up: a lane whose flash does, or a new one, or the least busy one.
      {"k3", 1, keep, true, use(0)},
      {"53", 1, keep, true, widen},
      {"53", 1, keep, false, use(1)},
      {"35", 1, keep, false, use(0)},
      {"b5", 1, keep, true, widen},
      {"b5", 1, keep, false, use(1)},
      {"r5", 1, keep, false, use(1)},
      // A file that stays is not affected by how busy the flash of other lanes is.
      {"3f", 1, keep, true, use(1)},
      // Nor is a file that does not keep its lane.
      {"35", 1, turn, false, use(0)},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ChooseLane(ViewsOf(c.lanes), c.last, c.wish, c.may_widen), c.wanted)
        << "lanes " << c.lanes << ", last " << c.last << ", wish " << static_cast<int>(c.wish) << ", may widen "
        << c.may_widen;
  }
}

TEST(LaneChoice, InTurnEachFreeLaneComesOnceInARound) {
  for (size_t lanes = 1; lanes <= 16; ++lanes) {
    const std::vector<LaneView> views(lanes);
    std::map<size_t, int> uses;
    size_t last = lanes / 2;
    for (size_t i = 0; i < 3 * lanes; ++i) {
      last = ChooseLane(views, last, LaneWish::kInTurn, true).lane;
      ++uses[last];
    }
    EXPECT_EQ(uses.size(), lanes);
    for (const auto& [lane, count] : uses) EXPECT_EQ(count, 3) << lane;
  }
}

// For all combinations of lanes.
TEST(LaneChoice, NeverUsesALaneThatIsNotFreeNorWaitsWhereOneIs) {
  const uint64_t seed = TestSeed(20240607);
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::string kinds = "fbrk35";
  for (int i = 0; i < 200'000; ++i) {
    std::string lanes;
    for (uint64_t n = random.Below(6); n > 0; --n) lanes += kinds[random.Below(kinds.size())];
    const std::vector<LaneView> views = ViewsOf(lanes);
    const size_t last = lanes.empty() ? 0 : random.Below(lanes.size());
    const auto wish = static_cast<LaneWish>(random.Below(3));
    const bool may_widen = random.Below(2) == 0;
    const LaneDecision decision = ChooseLane(views, last, wish, may_widen);
    const auto in = [&](State state) { return std::ranges::count(views, state, &LaneView::state); };
    SCOPED_TRACE("lanes " + lanes + ", last " + std::to_string(last));
    switch (decision.kind) {
      case Kind::kUse:
        ASSERT_LT(decision.lane, lanes.size());
        ASSERT_EQ(views[decision.lane].state, State::kFree);
        ASSERT_FALSE(wish == LaneWish::kSpread && may_widen);
        break;
      case Kind::kWiden:
        ASSERT_TRUE(may_widen);
        ASSERT_TRUE(wish != LaneWish::kInTurn || in(State::kFree) == 0);
        break;
      case Kind::kOpen:
        ASSERT_EQ(in(State::kFree) + in(State::kBusy), 0);
        break;
      case Kind::kWait:
        ASSERT_EQ(in(State::kFree), 0);
        ASSERT_GT(in(State::kBusy), 0);
        break;
    }
  }
}

// If a file is written in turn to lanes that take equally long, the number of its lanes becomes the ratio of its
// writer's speed to that of a lane, and each lane gets the same amount.
TEST(LaneChoice, ASetGrowsToTheSpeedOfItsWriter) {
  constexpr int kWriteNs = 100;  // of a write to one lane
  for (const int interval_ns : {200, 100, 50, 25, 10}) {
    WidenGate gate(16);
    std::vector<int> busy_until_ns;
    std::vector<LaneView> views;
    std::vector<int> writes(16);
    size_t last = 0;
    for (int now_ns = 0; now_ns < 1000 * interval_ns; now_ns += interval_ns) {
      for (size_t i = 0; i < views.size(); ++i) {
        views[i].state = busy_until_ns[i] > now_ns ? State::kBusy : State::kFree;
      }
      const LaneDecision decision = ChooseLane(views, last, LaneWish::kInTurn, gate.MayAsk(views.size()));
      ASSERT_NE(decision.kind, Kind::kWait);
      last = decision.lane;
      if (decision.kind != Kind::kUse) {
        last = views.size();
        views.emplace_back();
        busy_until_ns.push_back(0);
        gate.OnChange();
      }
      busy_until_ns[last] = now_ns + kWriteNs;
      ++writes[last];
      gate.OnWrite();
    }
    const auto wanted = static_cast<size_t>(std::max(1, kWriteNs / interval_ns));
    EXPECT_EQ(views.size(), wanted) << interval_ns;
    const auto used = std::span(writes).first(views.size());
    EXPECT_LE(*std::ranges::max_element(used) - *std::ranges::min_element(used), 1) << interval_ns;
  }
}

TEST(WidenGate, MayNotAskWithoutALaneNorBeyondTheWidth) {
  const WidenGate gate(3);
  EXPECT_FALSE(gate.MayAsk(0));
  EXPECT_TRUE(gate.MayAsk(1));
  EXPECT_TRUE(gate.MayAsk(2));
  EXPECT_FALSE(gate.MayAsk(3));
  EXPECT_FALSE(WidenGate(1).MayAsk(1));
}

TEST(WidenGate, AfterARefusalItWaitsForAsManyWritesAsThereMayBeLanes) {
  WidenGate gate(4);
  for (int refusal = 0; refusal < 3; ++refusal) {
    ASSERT_TRUE(gate.MayAsk(2));
    gate.OnRefused();
    for (int i = 0; i < 4; ++i) {
      EXPECT_FALSE(gate.MayAsk(2));
      gate.OnWrite();
    }
  }
  EXPECT_TRUE(gate.MayAsk(2));
}

TEST(WidenGate, AChangeEndsTheWait) {
  WidenGate gate(4);
  gate.OnRefused();
  EXPECT_FALSE(gate.MayAsk(2));
  gate.OnChange();
  EXPECT_TRUE(gate.MayAsk(2));
}

TEST(LaneChoice, AFileOfKnownSizeHasALaneForEachFourUnits) {
  EXPECT_EQ(1U, LanesOf(1, 100, 16));
  EXPECT_EQ(1U, LanesOf(400, 100, 16));
  EXPECT_EQ(2U, LanesOf(401, 100, 16));
  EXPECT_EQ(16U, LanesOf(100'000, 100, 16));
  EXPECT_EQ(16U, LanesOf(0, 100, 16));
}

TEST(ReadWindowTest, IsAStripeWithinBounds) {
  EXPECT_EQ(512 * kKiB, ReadWindowOf(1, 384 * kKiB));
  EXPECT_EQ(1536 * kKiB, ReadWindowOf(4, 384 * kKiB));
  EXPECT_EQ(4 * kMiB, ReadWindowOf(16, 384 * kKiB));
}

TEST(WidenGate, WritesBeforeARefusalDoNotCount) {
  WidenGate gate(2);
  for (int i = 0; i < 10; ++i) gate.OnWrite();
  gate.OnRefused();
  EXPECT_FALSE(gate.MayAsk(1));
}

}  // namespace
}  // namespace isozone
