// ServingThreads: the threads that take their requests from one place, which is /dev/fuse or the queue of a CPU, and of
// which one that serves a request may wait until another request has been served. The last one that does not wait never
// does, so there is always a thread that takes the other request.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace isozone {

class ServingThreads {
 public:
  // The calling thread is one of `threads`, as long as this lives.
  class Membership {
   public:
    explicit Membership(ServingThreads& threads);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

   private:
    ServingThreads& threads_;
  };

  // Of the calling thread, while it waits.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    // Whether it may wait.
    bool granted() const { return threads_ != nullptr; }

   private:
    ServingThreads* threads_;
  };

 private:
  std::atomic<int> awake_{0};  // members that do not wait
};

}  // namespace isozone
