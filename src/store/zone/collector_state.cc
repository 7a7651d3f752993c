#include "store/zone/collector_state.h"

#include <algorithm>
#include <utility>

namespace isozone {

CollectorState::CollectorState(std::shared_ptr<const GcScheme> scheme, size_t most_together)
    : scheme_(std::move(scheme)), most_together_(most_together) {}

bool CollectorState::Start() {
  if (started_ || stopping_) return false;
  started_ = true;
  return true;
}

void CollectorState::Wake() {
  wanted_ = true;
  hurry_ = true;
}

void CollectorState::Change(std::shared_ptr<const GcScheme> scheme, size_t most_together) {
  scheme_ = std::move(scheme);
  most_together_ = most_together;
  Wake();  // to look at once
}

bool CollectorState::attached() const {
  return started_ && !stopping_ && !broken_ && scheme_->automatic() && scheme_->writers_wait();
}

void CollectorState::RemoveAvoided(std::vector<GcCandidate>& candidates) const {
  std::erase_if(candidates, [this](const GcCandidate& candidate) { return avoided_.contains(candidate.zone); });
}

// ---------------------------------------------------------------------------------------------------------------------
// Between rounds
// ---------------------------------------------------------------------------------------------------------------------

void CollectorState::Begin(std::optional<double> free_percent) {
  ++looks_;
  std::erase_if(avoided_, [this](const auto& zone) { return zone.second <= looks_; });
  round_ = Round{};
  round_->scheme = scheme_;
  round_->most_together = most_together_;
  round_->free_percent = free_percent;
  if (free_percent) round_->phase = Phase::kResetting;
}

CollectorStep CollectorState::Next(int64_t now_ns) {
  if (stopping_) return {Kind::kQuit};
  if (round_) return {Kind::kWait, kForever};  // a round that a thread asked for is under way
  if (considering_) return {Kind::kLook};
  if (std::exchange(goes_on_, false)) {
    Begin({});
    return {Kind::kBegin};
  }
  if (!look_at_ns_) look_at_ns_ = now_ns + scheme_->interval_ns();
  if (!wanted_ && now_ns < *look_at_ns_) return {Kind::kWait, *look_at_ns_};
  wanted_ = false;
  if (broken_ || !scheme_->automatic()) {
    look_at_ns_ = now_ns + scheme_->interval_ns();
    return {Kind::kWait, *look_at_ns_};
  }
  look_at_ns_.reset();
  Begin({});
  return {Kind::kBegin};
}

void CollectorState::Consider(const GcSpace& space) {
  considering_ = false;
  goes_on_ = !broken_ && (space.wanted || (scheme_->decides_again() && scheme_->Due(space)));
}

bool CollectorState::BeginAsked(double free_percent) {
  --asking_;
  if (stopping_) return false;
  Begin(free_percent);
  return true;
}

void CollectorState::EndRound() {
  considering_ = considering_ || (round_->by_itself() && round_->gained() && !round_->error && !stopping_);
  round_.reset();
  urgency_ = 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// In a round
// ---------------------------------------------------------------------------------------------------------------------

CollectorStep CollectorState::NextInRound(int64_t now_ns) {
  switch (round_->phase) {
    case Phase::kResetting:
      round_->phase = Phase::kDeciding;
      return {Kind::kResetDead};
    case Phase::kDeciding:
      return NextBatch();
    case Phase::kListing:
      return {Kind::kList};
    case Phase::kHandingOut:
      return Victims(now_ns);
    case Phase::kCopying:
      return {Kind::kGoOn};
    case Phase::kPacing:
      return {Kind::kLook};
    case Phase::kResting:
      return Rest(now_ns);
    case Phase::kCeasing:
      return {Kind::kCease};
    case Phase::kEnding:
      break;
  }
  return End();
}

CollectorStep CollectorState::NextBatch() {
  if (!stopping_ && (!round_->victims.empty() || !Enough())) return {Kind::kLook};
  round_->cut = round_->cut || (stopping_ && !round_->by_itself());
  round_->phase = Phase::kEnding;
  return End();
}

CollectorStep CollectorState::End() const {
  CollectorStep step{Kind::kEnd};
  step.gained = round_->gained();
  return step;
}

bool CollectorState::Enough() {
  Round& round = *round_;
  if (!round.by_itself()) return round.chosen;
  if (round.reclaimed > std::exchange(round.reclaimed_then, round.reclaimed)) ++round.batches;
  const bool superseded = asking_ > 0 || scheme_ != round.scheme;
  // Zones that could not be moved are left out of the next choice, until something was gained or no zone is left.
  const bool once = !round.scheme->decides_again() || superseded || round.batches >= kMostBatches;
  return round.batches > 0 && once;
}

void CollectorState::SpaceIs(const GcSpace& space, int64_t now_ns) {
  Round& round = *round_;
  round.space = space;
  if (round.phase == Phase::kPacing) {
    SetPace(now_ns);
    return;
  }
  round.together = std::clamp<size_t>(space.empty_zones / 2, 1, round.most_together);
  if (!round.victims.empty()) {
    HandOut();
    return;
  }
  if (!round.by_itself()) round.cut = space.free_percent() >= *round.free_percent;
  const bool due = round.by_itself() ? round.scheme->Due(space) : !round.cut;
  round.phase = due ? Phase::kListing : Phase::kEnding;
}

void CollectorState::CandidatesAre(std::vector<GcCandidate> candidates) {
  RemoveAvoided(candidates);
  Choose(std::move(candidates));
  HandOut();
}

void CollectorState::Choose(std::vector<GcCandidate> candidates) {
  Round& round = *round_;
  round.chosen = true;
  round.victims = round.by_itself() ? round.scheme->Decide(round.space, candidates) : round.scheme->Order(candidates);
  if (round.victims.empty()) return;
  if (round.by_itself() && round.scheme->decides_again()) {
    round.victims.resize(std::min(round.together, round.victims.size()));
  }
  urgency_ = round.by_itself() ? round.scheme->Urgency(round.space) : 1;
  std::vector<ZoneId> victims = round.victims;
  std::ranges::sort(victims);
  round.bytes_to_copy = 0;
  for (const GcCandidate& candidate : candidates) {
    if (std::ranges::binary_search(victims, candidate.zone)) round.bytes_to_copy += candidate.valid;
  }
}

CollectorStep CollectorState::Victims(int64_t now_ns) {
  std::vector<ZoneId>& victims = round_->victims;
  const auto end = victims.begin() + static_cast<ptrdiff_t>(std::min(round_->together, victims.size()));
  CollectorStep step{Kind::kCopy};
  step.victims.assign(victims.begin(), end);
  step.bytes_to_copy = round_->bytes_to_copy;
  victims.erase(victims.begin(), end);
  round_->phase = Phase::kCopying;
  round_->since_ns = now_ns;
  return step;
}

void CollectorState::WindowEnded(int64_t now_ns, bool cut) {
  hurry_ = false;  // the reported space includes those that waited before
  round_->took_ns = now_ns - round_->since_ns;
  round_->cut = round_->cut || cut;
  round_->phase = Phase::kPacing;
}

void CollectorState::SetPace(int64_t now_ns) {
  Round& round = *round_;
  if (!round.by_itself()) {
    round.cut = round.cut || stopping_ || round.space.free_percent() >= *round.free_percent;
    round.phase = round.cut ? Phase::kCeasing : Phase::kCopying;
    return;
  }
  urgency_ = round.scheme->Urgency(round.space);
  const double rest_ns = static_cast<double>(round.took_ns) * (1 - urgency_) / urgency_;
  const auto longest_ns = static_cast<double>(kLongestRestNs);
  round.rest_until_ns = now_ns + static_cast<int64_t>(std::clamp(rest_ns, 0.0, longest_ns));
  round.phase = Phase::kResting;
}

CollectorStep CollectorState::Rest(int64_t now_ns) {
  if (stopping_) {
    round_->phase = Phase::kCeasing;
    return {Kind::kCease};
  }
  if (!hurry_ && asking_ == 0 && now_ns < round_->rest_until_ns) return {Kind::kRest, round_->rest_until_ns};
  round_->phase = Phase::kCopying;
  round_->since_ns = now_ns;
  return {Kind::kGoOn};
}

void CollectorState::BatchEnded(const Batch& batch) {
  Round& round = *round_;
  for (const ZoneId zone : batch.failed) avoided_[zone] = looks_ + kAvoidRounds;
  for (const ZoneId zone : batch.skipped) avoided_[zone] = looks_ + 1;
  round.reclaimed += batch.bytes_reclaimed;
  round.error = batch.error;
  broken_ = broken_ || batch.broken;
  const bool ceased = round.phase == Phase::kCeasing;
  round.phase = ceased || batch.error ? Phase::kEnding : Phase::kDeciding;
}

}  // namespace isozone
