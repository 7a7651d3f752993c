// Latch: a thread waits until each of a number of events has happened, most often the completions of its requests.
//
//   std::vector<IoRequest> requests;   declared first, with everything that the requests use
//   Latch latch;                       declared after them, so that it is destroyed before them
//   for (IoRequest& request : requests) {
//     latch.Expect(request);           sets done and context
//     engine.Submit(request);
//   }
//   latch.Wait();
//
// Invariants:
//  * The destructor waits. So on no path, early returns included, does a completion touch an object that is destroyed.
//  * CountDown touches the latch only under its lock, so a waiter may destroy the latch as soon as Wait has returned.
//  * What a thread did before CountDown happens before Wait returns.
//  * A latch can be used again once every event has happened.
//
// A read of one block makes a latch of its own, so a latch takes its lock once for each event and once for each wait,
// and no more: what only the owner asks is kept by the owner.
//
// Thread safety: any thread may call CountDown. The owner of the latch serialises all other calls.
#pragma once

#include <cassert>
#include <cstddef>

#include "base/mutex.h"

namespace isozone {

class Latch {
 public:
  // `count` events are expected from the beginning.
  explicit Latch(size_t count = 0) : expected_(count) {}
  ~Latch() {
    if (seen_ != expected_) Wait();
  }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // Expects one more event. Must be called before that event can happen.
  void Add() { ++expected_; }
  // Expects the completion of `request`, which must not be submitted yet and must live until it completes.
  template <typename Request>
  void Expect(Request& request) {
    Add();
    request.context = this;
    request.done = [](Request& completed) { static_cast<Latch*>(completed.context)->CountDown(); };
  }

  // Reports that an event has happened. Does not block.
  void CountDown() {
    const MutexLock lock(mu_);
    // Signalled under the lock: the waiter may destroy this object as soon as it sees the last event.
    if (++happened_ == awaited_) reached_.Signal();
  }

  // Waits until every event has happened.
  void Wait() { WaitForAtMost(0); }
  // Waits until at most `events` of the expected events have not happened yet.
  void WaitForAtMost(size_t events) {
    if (expected_ - seen_ <= events) return;
    const MutexLock lock(mu_);
    awaited_ = expected_ - events;
    while (happened_ < awaited_) reached_.Wait(mu_);
    seen_ = happened_;
    assert(seen_ <= expected_);
  }
  // Returns whether every event has happened, so that Wait would return at once.
  bool down() const {
    if (seen_ == expected_) return true;
    const MutexLock lock(mu_);
    return happened_ == expected_;
  }

 private:
  size_t expected_;  // events; the owner's
  size_t seen_ = 0;  // events that the owner knows to have happened; the owner's
  mutable Mutex mu_;
  CondVar reached_;
  size_t happened_ ISOZONE_GUARDED_BY(mu_) = 0;  // events
  size_t awaited_ ISOZONE_GUARDED_BY(mu_) = 0;  // the number of events at which the waiter goes on; 0: nobody waits yet
};

}  // namespace isozone
