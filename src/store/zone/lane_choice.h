// LaneChoice: decides which of its zones a striped file writes to next, and whether it asks for one more.
//
//   lane   a zone that the file is written to, with one write at a time. Lanes are in a ring, in the order in which
//          they were opened; `last` is the one that was used last.
//   wish   what the writer wants of the next lane:
//
//            kInTurn   The next free lane of the ring; one more only if none is free. So a writer that is slower than
//                      its lanes takes few zones, and a faster one uses them in a fixed order.
//            kSpread   One more as long as that is allowed; otherwise as kInTurn.
//            kKeep     The last lane, or the free one before it in the ring, because a thread waits for each write, and
//                      a file that stays in one zone is durable with one write. But if the last write filled a unit of
//                      flash and the flash does not keep up (log_pace.h): the least busy lane whose flash does,
//                      otherwise one more, otherwise the least busy lane.
//
//   else   If no lane is free, the file asks for one more; otherwise it waits for the write that was started first. If
//          no lane can become free, it opens its first lane, which it must have, and may wait for it.
//
// WidenGate says whether a file may ask for one more lane: it must have a lane, and fewer than the width. After a
// refusal it may ask again once it has started as many writes as it may have lanes, or once its set of lanes, or what
// it asks for, has changed. A refusal costs a look at all groups, and its reasons change with zones, not with writes.
//
// Pure: time is an argument, in the form of backlogs. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.h"

namespace isozone {

enum class LaneWish : uint8_t { kInTurn, kSpread, kKeep };

struct LaneView {
  enum class State : uint8_t {
    kFree,
    kBusy,     // a write is in flight
    kRetired,  // takes no more writes
  };
  State state = State::kFree;
  bool unit_ended = false;  // the last write ended a unit that flash programs at once
  bool keeps_up = true;     // its flash takes a unit without waiting for the one before
  int64_t backlog_ns = 0;   // how long its flash still has to program
};

struct LaneDecision {
  enum class Kind : uint8_t {
    kUse,    // write to `lane`
    kWiden,  // ask for one more, and decide again if that is refused
    kOpen,   // take a zone, and wait for it if need be
    kWait,   // wait for the write that was started first
  };
  Kind kind = Kind::kOpen;
  size_t lane = 0;  // index, for kUse
  bool operator==(const LaneDecision&) const = default;
};

// Decides. `last` is the index of the lane that was used last, if there is one; `may_widen` is what WidenGate::MayAsk
// returns.
LaneDecision ChooseLane(std::span<const LaneView> lanes, size_t last, LaneWish wish, bool may_widen);

// Returns how many lanes a file may have of which `expected_bytes` will be written, `unit_bytes` to a lane at a time:
// one for each four units, so that a small file does not take one unit in each of many zones. It is `width` if the size
// is unknown (0).
constexpr uint32_t LanesOf(uint64_t expected_bytes, uint64_t unit_bytes, uint32_t width) {
  constexpr uint64_t kUnitsOfLane = 4;
  if (expected_bytes == 0) return width;
  const uint64_t worth = (expected_bytes - 1) / (kUnitsOfLane * unit_bytes) + 1;
  return worth < width ? static_cast<uint32_t>(worth) : width;
}

// Returns how many bytes are read at once by whoever reads a file in so many zones from front to back: a stripe, within
// bounds.
constexpr uint64_t ReadWindowOf(uint32_t zones, uint64_t unit_bytes) {
  return std::clamp<uint64_t>(zones * unit_bytes, 512 * kKiB, 4 * kMiB);
}

class WidenGate {
 public:
  // `width` is the number of lanes that the file may have; at least 1.
  explicit WidenGate(uint32_t width) : width_(width) {}

  uint32_t width() const { return width_; }
  bool MayAsk(size_t lanes) const { return lanes > 0 && lanes < width_ && writes_to_wait_ == 0; }
  void OnRefused() { writes_to_wait_ = width_; }
  void OnWrite() { writes_to_wait_ -= writes_to_wait_ > 0 ? 1 : 0; }
  // Must be called when a lane was opened or lost, or the file asks for zones of another kind.
  void OnChange() { writes_to_wait_ = 0; }

 private:
  const uint32_t width_;
  uint32_t writes_to_wait_ = 0;
};

}  // namespace isozone
