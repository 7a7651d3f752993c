// Latch: a thread waits until each of a number of events has happened, most often the completions of its requests.
//
//   std::vector<IoRequest> requests;   what the requests use is declared first
//   Latch latch;                       and the latch behind it, so that it is destroyed before
//   for (IoRequest& request : requests) {
//     latch.Expect(request);           sets done and context
//     engine.Submit(request);
//   }
//   latch.Wait();
//
// Invariants:
//  * The destructor waits. So no path, an early return included, leaves a completion behind that touches what has gone.
//  * CountDown touches the latch under its lock alone, so a waiter may destroy the latch as soon as Wait has returned.
//  * What a thread did before CountDown has happened for the thread that returns from Wait.
//  * It can be used again once every event has happened.
//
// Thread safety: CountDown is called on any thread, all else on the thread that owns the latch.
#pragma once

#include <cassert>
#include <cstddef>

#include "base/mutex.h"

namespace isozone {

class Latch {
 public:
  // `count` events are expected from the beginning.
  explicit Latch(size_t count = 0) : count_(count) {}
  ~Latch() { Wait(); }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // One event more is expected. To be called before it can happen.
  void Add() {
    const MutexLock lock(mu_);
    ++count_;
  }
  // The completion of `request`, which is about to be submitted, is one event more. It stays until then.
  template <typename Request>
  void Expect(Request& request) {
    Add();
    request.context = this;
    request.done = [](Request& completed) { static_cast<Latch*>(completed.context)->CountDown(); };
  }

  // An event has happened; does not block.
  void CountDown() {
    const MutexLock lock(mu_);
    assert(count_ > 0);
    // Signalled under the lock: the waiter may destroy this object as soon as it sees zero.
    if (--count_ == awaited_) reached_.Signal();
  }

  // Until every event has happened.
  void Wait() { WaitForAtMost(0); }
  // Until no more than `events` of them have still to happen.
  void WaitForAtMost(size_t events) {
    const MutexLock lock(mu_);
    awaited_ = events;
    while (count_ > events) reached_.Wait(mu_);
  }
  // Wait would not wait.
  bool down() const {
    const MutexLock lock(mu_);
    return count_ == 0;
  }

 private:
  mutable Mutex mu_;
  CondVar reached_;
  size_t count_ ISOZONE_GUARDED_BY(mu_);
  size_t awaited_ ISOZONE_GUARDED_BY(mu_) = 0;  // the number of events at which the waiter goes on
};

}  // namespace isozone
