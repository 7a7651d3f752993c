// Completions: the commands of a simulation that have ended, and a bound on when the next one can end.
//
// A command is identified by a number, counted up over all commands, and by the slot that holds it. For each running
// command there is a lower bound of its end. Later commands only delay it, so a bound that was correct once stays
// correct. So only the lowest bound has to be computed again, until it no longer changes: then it holds for all
// commands.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "device/emulated/nand/command_model.h"
#include "device/emulated/nand/event_queue.h"

namespace isozone {

class Completions {
 public:
  // Adds a command that, as far as is known when it begins, cannot end before `time`.
  void Begin(int64_t time, uint64_t number, uint32_t slot) { bounds_.push({time, number, slot}); }
  // Notes that the command ends at `time`, which may lie in the future.
  void End(int64_t time, uint64_t number, uint64_t ticket) { ended_.push({time, number, ticket}); }

  // Appends the commands that end at `now` or before, in order of time, then of number, and forgets them.
  void Take(int64_t now, std::vector<TimingCompletion>& completed) {
    while (!ended_.empty() && ended_.top().time <= now) {
      completed.push_back({ended_.top().what, ended_.top().time});
      ended_.pop();
    }
  }

  // Returns CommandModel::NextCompletionBound(). `earliest(slot, number)` returns when that command can end, as far as
  // is known now, or kNever if End was called for it. `next_event` is the time of the next event of the simulation.
  template <typename Earliest>
  int64_t NextBound(int64_t next_event, const Earliest& earliest) {
    const int64_t known = ended_.empty() ? CommandModel::kNever : ended_.top().time;
    while (!bounds_.empty() && bounds_.top().time < known) {
      const Entry lowest = bounds_.top();
      const int64_t at = earliest(static_cast<uint32_t>(lowest.what), lowest.number);
      // A command whose end is not known cannot end before the next event.
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

  MinHeap<Entry> ended_;   // not taken yet, though perhaps in the future
  MinHeap<Entry> bounds_;  // one for each command that has not ended, and some for commands that have
};

}  // namespace isozone
