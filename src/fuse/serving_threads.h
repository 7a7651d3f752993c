// ServingThreads: the threads that take their requests from one place, which is /dev/fuse or the queue of a CPU. A
// thread that serves a request may wait for another request to be served, but never the last one that does not wait
// yet. So there is always a thread that takes the other request.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace isozone {

class ServingThreads {
 public:
  // Makes the calling thread one of `threads`, as long as this object lives.
  class Membership {
   public:
    explicit Membership(ServingThreads& threads);
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

   private:
    ServingThreads& threads_;
  };

  // Lets the calling thread wait, as long as this object lives.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    // Returns whether the thread may wait.
    bool granted() const { return threads_ != nullptr; }

   private:
    ServingThreads* threads_;
  };

 private:
  std::atomic<int> awake_{0};  // members that do not wait
};

}  // namespace isozone
