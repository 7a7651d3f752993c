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

// Something that acts in virtual time. It outlives the loop's last call of it.
class Actor {
 public:
  Actor() = default;
  virtual ~Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  // It is due.
  virtual void Proceed() = 0;

 private:
  friend class EventLoop;
  uint64_t calls_ = 0;
};

// Rings for those who wait for a change of one kind.
class Bell {
 private:
  friend class EventLoop;
  std::vector<std::pair<Actor*, uint64_t>> waiting_;  // with their calls at that time
};

class EventLoop {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  int64_t now_ns() const { return now_ns_; }

  // At once, where `time_ns` has passed. kNever: not at all.
  void CallAt(int64_t time_ns, Actor& actor) {
    if (time_ns == kNever) return;
    events_.push({time_ns < now_ns_ ? now_ns_ : time_ns, ++order_, &actor, actor.calls_});
  }
  void CallOn(Bell& bell, Actor& actor) { bell.waiting_.emplace_back(&actor, actor.calls_); }
  // Those who wait are called now, though not before this returns.
  void Ring(Bell& bell) {
    for (const auto& [actor, calls] : std::exchange(bell.waiting_, {})) {
      if (calls == actor->calls_) CallAt(now_ns_, *actor);
    }
  }

  // Calls the next actor. False: nobody waits for a time.
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
