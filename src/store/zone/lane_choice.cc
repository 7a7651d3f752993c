#include "store/zone/lane_choice.h"

#include <optional>

namespace isozone {
namespace {

// The first free lane of the ring behind `last`; `last` itself comes last.
std::optional<size_t> NextFree(std::span<const LaneView> lanes, size_t last) {
  for (size_t i = 1; i <= lanes.size(); ++i) {
    const size_t lane = (last + i) % lanes.size();
    if (lanes[lane].state == LaneView::State::kFree) return lane;
  }
  return std::nullopt;
}

// `last`, or the first free lane before it in the ring.
std::optional<size_t> LastFree(std::span<const LaneView> lanes, size_t last) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const size_t lane = (last + lanes.size() - i) % lanes.size();
    if (lanes[lane].state == LaneView::State::kFree) return lane;
  }
  return std::nullopt;
}

std::optional<size_t> LeastBusy(std::span<const LaneView> lanes) {
  std::optional<size_t> found;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].state != LaneView::State::kFree) continue;
    if (!found || lanes[lane].backlog_ns < lanes[*found].backlog_ns) found = lane;
  }
  return found;
}

// A lane, and whether it is as good as a new one would be.
struct Candidate {
  std::optional<size_t> lane;
  bool good = false;
};

Candidate CandidateOf(std::span<const LaneView> lanes, size_t last, LaneWish wish) {
  if (lanes.empty()) return {};
  if (wish != LaneWish::kKeep) return {NextFree(lanes, last), wish == LaneWish::kInTurn};
  if (!lanes[last].unit_ended || lanes[last].keeps_up) return {LastFree(lanes, last), true};
  const std::optional<size_t> lane = LeastBusy(lanes);
  return {lane, lane && lanes[*lane].keeps_up};
}

bool AnyIsBusy(std::span<const LaneView> lanes) {
  for (const LaneView& lane : lanes) {
    if (lane.state == LaneView::State::kBusy) return true;
  }
  return false;
}

}  // namespace

LaneDecision ChooseLane(std::span<const LaneView> lanes, size_t last, LaneWish wish, bool may_widen) {
  using Kind = LaneDecision::Kind;
  const auto [lane, good] = CandidateOf(lanes, last, wish);
  if (lane && good) return {Kind::kUse, *lane};
  if (may_widen) return {Kind::kWiden};
  if (lane) return {Kind::kUse, *lane};
  return {AnyIsBusy(lanes) ? Kind::kWait : Kind::kOpen};
}

}  // namespace isozone
