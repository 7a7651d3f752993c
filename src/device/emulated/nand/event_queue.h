// EventQueue: the future events of a simulation, in order of time, and of scheduling if times are equal.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

namespace isozone {

// A priority queue whose top is the smallest element.
template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;

enum class EventKind : uint8_t {
  kStepEnds,   // a command ends a step
  kPadding,    // a command may have another unit padded
  kArrayRead,  // a die has read a page and now needs its channel
  kArrayFree,  // a die has finished the job at the front
  kBuffered,   // the front of a die's intake is in its write buffer
};

struct Event {
  int64_t time = 0;
  uint64_t sequence = 0;
  EventKind kind = EventKind::kStepEnds;
  uint32_t index = 0;  // number of the command or the die
  bool operator>(const Event& other) const { return std::tie(time, sequence) > std::tie(other.time, other.sequence); }
};

class EventQueue {
 public:
  void Schedule(int64_t time, EventKind kind, uint32_t index) { events_.push({time, ++last_sequence_, kind, index}); }
  // Returns the time of the next event; INT64_MAX if there is none.
  int64_t NextTime() const { return events_.empty() ? INT64_MAX : events_.top().time; }
  // Removes and returns the next event. The queue must not be empty.
  Event Pop() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  MinHeap<Event> events_;
  uint64_t last_sequence_ = 0;
};

}  // namespace isozone
