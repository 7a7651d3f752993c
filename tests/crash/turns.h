// Turns: lets the threads of a file system have a device one after another, in an order that does not depend on how fast
// they are, so that one sequence of operations makes the same commands in the same order each time.
//
// A thread that wants the device waits until every other thread of the process either waits for its turn as well or is
// asleep, so that nothing can change but by one of those who wait. Then the owner goes first, who runs the operations;
// else the thread that was made first.
//
// Thread safety: any thread. One object at a time in a process, which has no threads but its owner and those of the file
// system.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace isozone::crash {

class Turns {
 public:
  // The calling thread is the owner.
  Turns();

  // Returns when it is the calling thread's turn.
  void Await();
  // The owner's: returns when every other thread is asleep, and none waits for its turn.
  void AwaitIdle();

 private:
  // Held for a few instructions, and never slept on: who sleeps is not taken to be about to do something.
  class SpinLock {
   public:
    explicit SpinLock(std::atomic_flag& flag);
    ~SpinLock() { flag_.clear(std::memory_order_release); }
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

   private:
    std::atomic_flag& flag_;
  };

  // Who waits, and how often that has changed.
  struct Queue {
    std::vector<pid_t> waiting;
    uint64_t changes = 0;
    bool owner_is_idle = false;
  };
  Queue Snapshot();
  // Every thread but `self`, who wait in `queue`, and the owner where it is idle, is asleep, all at one moment.
  bool OthersAreAsleep(pid_t self, const Queue& queue) const;
  bool IsFirst(pid_t thread, const Queue& queue) const;

  const pid_t owner_;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  Queue queue_;  // guarded by lock_
};

}  // namespace isozone::crash
