// Turns: lets the threads of a file system use a device one after another, in an order that does not depend on their
// speed. So a sequence of operations makes the same commands in the same order each time.
//
// A thread that wants the device waits until every other thread of the process either waits for its turn as well or is
// asleep, so that only a waiting thread can change anything. Then the owner, which runs the operations, goes first;
// otherwise the waiting thread that was created first.
//
// Thread safety: any thread may call any method. Only one object may exist at a time in a process, which must have no
// threads except the owner and those of the file system.
// system.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace isozone::crash {

class Turns {
 public:
  // The calling thread becomes the owner.
  Turns();

  // Returns when it is the calling thread's turn.
  void Await();
  // For the owner: returns when every other thread is asleep and none waits for its turn.
  void AwaitIdle();

 private:
  // Held for a few instructions. Threads do not sleep on it, because a sleeping thread counts as having nothing to do.
  class SpinLock {
   public:
    explicit SpinLock(std::atomic_flag& flag);
    ~SpinLock() { flag_.clear(std::memory_order_release); }
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

   private:
    std::atomic_flag& flag_;
  };

  // The threads that wait, and how often that set has changed.
  struct Queue {
    std::vector<pid_t> waiting;
    uint64_t changes = 0;
    bool owner_is_idle = false;
  };
  Queue Snapshot();
  // Whether, at one moment, every thread is asleep except `self`, those in `queue`, and the owner if it is idle.
  bool OthersAreAsleep(pid_t self, const Queue& queue) const;
  bool IsFirst(pid_t thread, const Queue& queue) const;

  const pid_t owner_;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  Queue queue_;  // guarded by lock_
};

}  // namespace isozone::crash
