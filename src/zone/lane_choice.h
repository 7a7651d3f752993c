// LaneChoice: which of its zones a striped file writes to next, and whether it asks for one more.
//
//   lane   a zone that the file is written to, with one write at a time. Lanes are in a ring, in the order in which they
//          were opened; `last` is the one that was used last.
//   wish   what the writer wants of the next lane:
//
//            kInTurn   the next free one of the ring; one more only where none is free. So a writer that is slower than
//                      its lanes takes few zones, and one that is faster keeps to one order of them.
//            kSpread   one more as long as there may be one; else as kInTurn.
//            kKeep     the last one, or the free one before it in the ring: somebody waits for each write, and a file that
//                      stays in one zone is durable with one write. But where the last one has filled a unit of flash
//                      and its flash does not keep up (log_pace.h), the least busy one that does; else one more; else
//                      the least busy one.
//
//   else   Where no lane is free: one more; else the file waits for the write that was started first. Where there is no
//          lane that could become free: the first one, which the file has to have, and may wait for.
//
// WidenGate says whether one more may be asked for: while there is a lane, and fewer than the width; and after a refusal not
// before as many writes have been started as the file may have lanes, or its set of lanes, or what it asks for, has changed.
// A refusal costs a look at all groups, and what it depends on changes with zones, not with writes.
//
// Pure: time is an argument, in the form of backlogs. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isozone {

enum class LaneWish : uint8_t { kInTurn, kSpread, kKeep };

struct LaneView {
  enum class State : uint8_t {
    kFree,
    kBusy,     // a write is in flight
    kRetired,  // takes no more writes
  };
  State state = State::kFree;
  bool unit_ended = false;  // with the last write, which filled what flash programs at once
  bool keeps_up = true;     // its flash takes a unit without a wait for one before it
  int64_t backlog_ns = 0;   // how long its flash has to program
};

struct LaneDecision {
  enum class Kind : uint8_t {
    kUse,    // write to `lane`
    kWiden,  // ask for one more, and decide again if that is refused
    kOpen,   // take a zone, and wait for it if need be
    kWait,   // for the write that was started first
  };
  Kind kind = Kind::kOpen;
  size_t lane = 0;  // index, of kUse
  bool operator==(const LaneDecision&) const = default;
};

// `last`: index of the lane that was used last, if there is one; `may_widen`: WidenGate::MayAsk.
LaneDecision ChooseLane(std::span<const LaneView> lanes, size_t last, LaneWish wish, bool may_widen);

class WidenGate {
 public:
  // `width`: lanes that the file may have, at least 1.
  explicit WidenGate(uint32_t width) : width_(width) {}

  uint32_t width() const { return width_; }
  bool MayAsk(size_t lanes) const { return lanes > 0 && lanes < width_ && writes_to_wait_ == 0; }
  void OnRefused() { writes_to_wait_ = width_; }
  void OnWrite() { writes_to_wait_ -= writes_to_wait_ > 0 ? 1 : 0; }
  // A lane was opened or lost, or the file asks for zones of another kind.
  void OnChange() { writes_to_wait_ = 0; }

 private:
  const uint32_t width_;
  uint32_t writes_to_wait_ = 0;
};

}  // namespace isozone
