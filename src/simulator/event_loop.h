// EventLoop: virtual time. Actors ask to be called at a time, or when a bell rings, and are called in the order of
// time, then of asking. So two runs do the same.
//
// Whatever an actor has asked for is void once it is called: it asks anew for all that it still waits for.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

namespace isozone {

// Something that acts in virtual time. It must live until the loop has called it for the last time.
class Actor {
 public:
  Actor() = default;
  virtual ~Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  // The loop calls this when what the actor waits for is due.
  virtual void Proceed() = 0;

 private:
  friend class EventLoop;
  uint64_t calls_ = 0;
};

// A bell stands for one kind of change. Actors that wait for such a change are called when it rings.
class Bell {
 private:
  friend class EventLoop;
  std::vector<std::pair<Actor*, uint64_t>> waiting_;  // each with the number of its calls when it began to wait
};

class EventLoop {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  int64_t now_ns() const { return now_ns_; }

  // Calls `actor` at `time_ns`, or at once if that has passed. kNever: does not call it.
  void CallAt(int64_t time_ns, Actor& actor) {
    if (time_ns == kNever) return;
    events_.push({time_ns < now_ns_ ? now_ns_ : time_ns, ++order_, &actor, actor.calls_});
  }
  // Calls `actor` when `bell` rings next.
  void CallOn(Bell& bell, Actor& actor) { bell.waiting_.emplace_back(&actor, actor.calls_); }
  // Makes all actors that wait for `bell` due now. They are called by RunNext, not in here.
  void Ring(Bell& bell) {
    for (const auto& [actor, calls] : std::exchange(bell.waiting_, {})) {
      if (calls == actor->calls_) CallAt(now_ns_, *actor);
    }
  }

  // Calls the next actor. Returns false if no actor waits for a time.
  bool RunNext() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.calls != event.actor->calls_) continue;
      now_ns_ = event.time_ns;
      ++event.actor->calls_;
      event.actor->Proceed();
      return true;
    }
    return false;
  }

 private:
  struct Event {
    int64_t time_ns = 0;
    uint64_t order = 0;
    Actor* actor = nullptr;
    uint64_t calls = 0;
    bool operator<(const Event& other) const {  // the first one is on top
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };

  int64_t now_ns_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace isozone
