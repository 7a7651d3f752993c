// The commands of a simulation that have ended, and how early the next one can.
//
// A command is known by a number, counted up over all commands, and by the slot that holds it. While it runs, a bound is
// kept of when it can end at the earliest. A bound that was right once stays one, since what comes later only delays; so
// only the lowest has to be looked at again, until it is still right: then it is one for all.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "nand/command_model.h"
#include "nand/event_queue.h"

namespace isozone {

class Completions {
 public:
  // A command cannot end before `time`, as it looks when it begins.
  void Begin(int64_t time, uint64_t number, uint32_t slot) { bounds_.push({time, number, slot}); }
  // It ends at `time`, which may be still to come.
  void End(int64_t time, uint64_t number, uint64_t ticket) { ended_.push({time, number, ticket}); }

  // Appends what ends at `now` or before, in order of time, then of number, and forgets it.
  void Take(int64_t now, std::vector<TimingCompletion>& completed) {
    while (!ended_.empty() && ended_.top().time <= now) {
      completed.push_back({ended_.top().what, ended_.top().time});
      ended_.pop();
    }
  }

  // CommandModel::NextCompletionBound(). `earliest(slot, number)`: when that command can end, as it looks now; kNever
  // where End was called for it. `next_event`: when anything next happens in the simulation.
  template <typename Earliest>
  int64_t NextBound(int64_t next_event, const Earliest& earliest) {
    const int64_t known = ended_.empty() ? CommandModel::kNever : ended_.top().time;
    while (!bounds_.empty() && bounds_.top().time < known) {
      const Entry lowest = bounds_.top();
      const int64_t at = earliest(static_cast<uint32_t>(lowest.what), lowest.number);
      // What is not known to end yet does not before the next event.
      if (at <= lowest.time) return std::min(known, std::max(at, next_event));
      bounds_.pop();
      if (at != CommandModel::kNever) bounds_.push({at, lowest.number, lowest.what});
    }
    return known;
  }

 private:
  struct Entry {
    int64_t time = 0;
    uint64_t number = 0;
    uint64_t what = 0;  // the ticket or the slot
    auto operator<=>(const Entry&) const = default;
  };

  MinHeap<Entry> ended_;   // not taken yet
  MinHeap<Entry> bounds_;  // one for each command that has not ended, and some for others
};

}  // namespace isozone
