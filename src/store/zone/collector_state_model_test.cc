// Checks CollectorState against its invariants (collector_state.h), with a device, users and a copier that behave at
// random.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "store/zone/collector_state.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using Kind = CollectorStep::Kind;

constexpr uint32_t kZones = 24;

// Chooses any candidates, at any urgency.
class AnyScheme final : public GcScheme {
 public:
  explicit AnyScheme(Random& random)
      : random_(random), interval_ns_(static_cast<int64_t>(random.Between(1, 1'000'000'000))) {
    automatic_ = random.Chance(0.9);
    decides_again_ = random.Chance(0.6);
  }
  std::string_view name() const override { return "any"; }
  int64_t interval_ns() const override { return interval_ns_; }
  bool automatic() const override { return automatic_; }
  bool decides_again() const override { return decides_again_; }
  double Urgency(const GcSpace& /*space*/) const override {
    return random_.Chance(0.2) ? 1 : std::max(0.001, random_.Real());
  }
  bool Due(const GcSpace& space) const override { return space.free_percent() < 60; }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    std::vector<ZoneId> zones;
    for (const GcCandidate& candidate : candidates) {
      const auto at = static_cast<ptrdiff_t>(random_.Below(zones.size() + 1));
      zones.insert(zones.begin() + at, candidate.zone);
    }
    return zones;
  }

 protected:
  std::vector<ZoneId> Choose(const GcSpace& /*space*/, std::span<const GcCandidate> candidates) const override {
    std::vector<ZoneId> zones = Order(candidates);
    zones.resize(random_.Below(zones.size() + 1));
    return zones;
  }

 private:
  Random& random_;
  const int64_t interval_ns_;
  bool automatic_ = true;
  bool decides_again_ = false;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), state_(NewScheme(), NewMost()) { EXPECT_TRUE(state_.Start()); }

  // Does one event or step. Returns false if there is nothing left to do.
  bool Step() {
    now_ns_ += random_.Chance(0.3) ? static_cast<int64_t>(random_.Below(300'000'000)) : 1;
    if (random_.Chance(fruitful_ ? 0.01 : 0.2)) {
      Event();
      return true;
    }
    if (state_.working()) {
      StepInRound();
      return true;
    }
    if (asking_ > 0 && random_.Chance(0.5)) {
      BeginAsked();
      return true;
    }
    return StepBetweenRounds();
  }

  uint64_t rounds() const { return looks_; }
  uint64_t copied() const { return copied_; }
  uint64_t rests() const { return rests_; }
  uint64_t long_rounds() const { return long_rounds_; }

 private:
  std::shared_ptr<const GcScheme> NewScheme() {
    static constexpr const char* kSchemes[] = {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"};
    if (random_.Chance(0.6)) {
      scheme_ = std::make_shared<AnyScheme>(random_);
    } else {
      scheme_ = std::move(*MakeGcScheme(kSchemes[random_.Below(std::size(kSchemes))], {}));
    }
    return scheme_;
  }
  size_t NewMost() { return most_together_ = random_.Between(1, 6); }

  void Event() {
    switch (random_.Below(60)) {
      case 0:
        if (!random_.Chance(0.02)) break;
        state_.Stop();
        stopped_ = true;
        break;
      case 1:
        state_.Change(NewScheme(), NewMost());
        woken_ = hastened_ = true;
        break;
      case 2:
      case 3:
        state_.Ask();
        ++asking_;
        break;
      default:
        if (random_.Chance(0.5)) {
          state_.Wake();
          woken_ = true;
        } else {
          state_.Hurry();
        }
        hastened_ = true;
        break;
    }
  }

  GcSpace Space() {
    GcSpace space;
    space.zones = kZones;
    space.empty_zones = static_cast<uint32_t>(random_.Below(kZones));
    space.capacity = kZones * 1000;
    space.free = fruitful_ ? 0 : random_.Below(space.capacity + 1);
    space.wanted = random_.Chance(0.2);
    space.paced = random_.Chance(0.2);
    return space;
  }

  std::vector<GcCandidate> Candidates() {
    std::vector<GcCandidate> candidates;
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      if (random_.Chance(0.2)) continue;
      GcCandidate& candidate = candidates.emplace_back();
      candidate.zone = ZoneId(zone);
      candidate.capacity = candidate.written = 1000;
      candidate.valid = random_.Below(1000);
    }
    return candidates;
  }

  // --- Between rounds ---

  void NoteBegin(bool by_itself) {
    ASSERT_TRUE(state_.working());
    ASSERT_FALSE(stopped_);
    ++looks_;
    handed_out_.clear();
    by_itself_ = by_itself;
    first_ = true;
    copying_ = over_ = ceased_ = false;
    gaining_ = batches_ = 0;
    reclaimed_ = 0;
    decides_again_ = scheme_->decides_again();
    round_most_together_ = most_together_;
    fruitful_ = random_.Chance(0.1);
    if (by_itself) woken_ = false;
  }

  void BeginAsked() {
    --asking_;
    const bool begun = state_.BeginAsked(random_.Chance(0.3) ? 100 : 100 * random_.Real());
    ASSERT_NE(begun, stopped_);
    if (begun) NoteBegin(/*by_itself=*/false);
  }

  bool StepBetweenRounds() {
    const CollectorStep step = state_.Next(now_ns_);
    EXPECT_EQ(step.kind == Kind::kQuit, stopped_);
    switch (step.kind) {
      case Kind::kQuit:
        return false;
      case Kind::kWait:
        EXPECT_GT(step.until_ns, now_ns_);
        EXPECT_LE(step.until_ns, now_ns_ + scheme_->interval_ns());
        EXPECT_TRUE(!woken_ || broken_ || !scheme_->automatic()) << "somebody waits in vain";
        woken_ = false;
        now_ns_ = random_.Chance(0.8) ? step.until_ns : now_ns_;
        break;
      case Kind::kLook:
        state_.Consider(Space());
        break;
      case Kind::kBegin:
        EXPECT_FALSE(broken_);
        NoteBegin(/*by_itself=*/true);
        break;
      default:
        ADD_FAILURE() << "no step between rounds: " << static_cast<int>(step.kind);
    }
    return true;
  }

  // --- In a round ---

  void StepInRound() {
    const CollectorStep step = state_.NextInRound(now_ns_);
    const bool first = std::exchange(first_, false);
    EXPECT_EQ(step.kind == Kind::kResetDead, first && !by_itself_);
    if (over_) {
      EXPECT_EQ(step.kind, Kind::kEnd);
    }
    if (ceased_) {
      EXPECT_EQ(step.kind, Kind::kCease);
    }
    switch (step.kind) {
      case Kind::kResetDead:
        break;
      case Kind::kLook:
        space_ = Space();
        state_.SpaceIs(space_, now_ns_);
        break;
      case Kind::kList:
        EXPECT_FALSE(copying_);
        state_.CandidatesAre(Candidates());
        break;
      case Kind::kCopy:
        BeginBatch(step.victims);
        break;
      case Kind::kGoOn:
        ASSERT_TRUE(copying_);
        GoOn();
        break;
      case Kind::kRest:
        CheckRest(step.until_ns);
        break;
      case Kind::kCease:
        ASSERT_TRUE(copying_);
        ceased_ = true;
        if (random_.Chance(0.5)) EndBatch();
        break;
      case Kind::kEnd:
        EndRound(step.gained);
        break;
      default:
        ADD_FAILURE() << "no step of a round: " << static_cast<int>(step.kind);
    }
  }

  void BeginBatch(const std::vector<ZoneId>& victims) {
    ASSERT_FALSE(copying_);
    ASSERT_FALSE(victims.empty());
    ASSERT_LE(victims.size(), std::clamp<size_t>(space_.empty_zones / 2, 1, round_most_together_));
    for (const ZoneId zone : victims) {
      ASSERT_TRUE(handed_out_.insert(zone).second) << "zone " << zone.value() << " twice";
      const auto avoided = avoided_until_.find(zone);
      if (avoided != avoided_until_.end()) {
        ASSERT_GE(looks_, avoided->second) << "zone " << zone.value();
      }
    }
    copying_ = true;
    victims_ = victims;
    ++batches_;
    copied_ += victims.size();
    ASSERT_LE(batches_, CollectorState::kMostBatches + 2 * kZones) << "the round does not end";
  }

  void GoOn() {
    if (random_.Chance(0.4)) {
      EndBatch();
      return;
    }
    hastened_ = false;
    state_.WindowEnded(now_ns_, /*cut=*/!by_itself_ && random_.Chance(0.05));
  }

  void CheckRest(int64_t until_ns) {
    ++rests_;
    EXPECT_TRUE(by_itself_ && copying_);
    EXPECT_FALSE(hastened_ || stopped_ || asking_ > 0);
    EXPECT_GT(until_ns, now_ns_);
    // The space is reported some time after the window has ended.
    EXPECT_LE(until_ns, now_ns_ + CollectorState::kLongestRestNs);
    if (random_.Chance(0.5)) now_ns_ = until_ns;
  }

  void EndBatch() {
    std::vector<ZoneId> failed;
    std::vector<ZoneId> skipped;
    CollectorState::Batch batch;
    batch.error = !fruitful_ && random_.Chance(0.03);
    batch.broken = batch.error && random_.Chance(0.01);
    for (const ZoneId zone : victims_) {
      if (!fruitful_ && random_.Chance(0.1)) {
        failed.push_back(zone);
        avoided_until_[zone] = looks_ + CollectorState::kAvoidRounds;
      } else if (!fruitful_ && random_.Chance(0.2)) {
        skipped.push_back(zone);
        avoided_until_[zone] = looks_ + 1;
      } else if (!batch.error && !ceased_) {
        batch.bytes_reclaimed += random_.Between(1, 1000);
        handed_out_.erase(zone);  // it is emptied, and may be written again
      }
    }
    batch.failed = failed;
    batch.skipped = skipped;
    reclaimed_ += batch.bytes_reclaimed;
    if (batch.bytes_reclaimed > 0) ++gaining_;
    if (by_itself_ && decides_again_) {
      EXPECT_LE(gaining_, CollectorState::kMostBatches);
    }
    over_ = stopped_ || ceased_ || batch.error;
    copying_ = ceased_ = false;
    broken_ = broken_ || batch.broken;
    state_.BatchEnded(batch);
    EXPECT_EQ(state_.attached(), !stopped_ && !broken_ && scheme_->automatic() && scheme_->writers_wait());
  }

  void EndRound(bool gained) {
    EXPECT_FALSE(copying_);
    if (by_itself_) {
      EXPECT_EQ(gained, reclaimed_ > 0);
    }
    if (reclaimed_ > 0) {
      EXPECT_TRUE(gained);
    }
    if (by_itself_ && decides_again_ && gaining_ == CollectorState::kMostBatches) ++long_rounds_;
    fruitful_ = false;
    state_.EndRound();
    EXPECT_FALSE(state_.working());
    EXPECT_EQ(state_.urgency(), 0);
  }

  Random random_;
  std::shared_ptr<const GcScheme> scheme_;
  size_t most_together_ = 1;
  CollectorState state_;
  int64_t now_ns_ = 1;

  // The state of the model.
  bool stopped_ = false;
  bool broken_ = false;
  bool woken_ = false;     // and no round of the collector's own has begun since
  bool hastened_ = false;  // since the last window
  uint32_t asking_ = 0;
  uint64_t looks_ = 0;
  std::map<ZoneId, uint64_t> avoided_until_;  // the look until which a zone is avoided
  // The round under way.
  bool by_itself_ = false;
  bool first_ = false;  // no step of it was taken yet
  bool decides_again_ = false;
  bool fruitful_ = false;  // space is short, all victims are emptied, and little else happens
  size_t round_most_together_ = 1;
  GcSpace space_;
  std::set<ZoneId> handed_out_;  // and not emptied since
  std::vector<ZoneId> victims_;  // of the batch
  bool copying_ = false;
  bool ceased_ = false;
  bool over_ = false;
  uint32_t batches_ = 0;
  uint32_t gaining_ = 0;
  uint64_t reclaimed_ = 0;
  // Sums over all rounds.
  uint64_t copied_ = 0;
  uint64_t rests_ = 0;
  uint64_t long_rounds_ = 0;  // that ended after as many batches as may be
};

TEST(CollectorStateModelTest, HoldsItsInvariantsWhateverHappens) {
  const uint64_t seed = TestSeed(20261123);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  uint64_t steps = 0;
  uint64_t rounds = 0;
  uint64_t copied = 0;
  uint64_t rests = 0;
  uint64_t long_rounds = 0;
  for (uint64_t world = 0; steps < 1'500'000; ++world) {
    SCOPED_TRACE("world " + std::to_string(world));
    World w(seed + world);
    for (int i = 0; i < 20'000 && w.Step(); ++i, ++steps) {
      if (testing::Test::HasFailure()) FAIL() << "step " << i;
    }
    rounds += w.rounds();
    copied += w.copied();
    rests += w.rests();
    long_rounds += w.long_rounds();
  }
  // The run has reached every case.
  EXPECT_GT(rounds, 10'000u);
  EXPECT_GT(copied, 10'000u);
  EXPECT_GT(rests, 1'000u);
  EXPECT_GT(long_rounds, 100u);
}

}  // namespace
}  // namespace isozone
