// ThreadJobs: remembers what the threads that ask are doing, for operations that have no time to look it up each time.
//
// There are kPlaces places. Threads share a place, which remembers the last one of them that was asked for. A thread
// may get another name, and its number may become another thread's, so what a place has is taken for true for kKeptS at
// most.
//
//   a place   thread : 32 | seconds of a clock : 30 | ThreadJob : 2, from the highest bit on; 0: nothing yet
//
// Thread safety: any thread may call any method; none waits for another.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "fuse/thread_name.h"

namespace isozone {

class ThreadJobs {
 public:
  static constexpr size_t kPlaces = 256;
  static constexpr uint64_t kKeptS = 2;

  using Look = std::function<ThreadJob(pid_t)>;
  explicit ThreadJobs(Look look = [](pid_t thread) { return JobOf(ThreadName(thread)); }) : look_(std::move(look)) {}

  // Returns the job of `thread`. `now_ns` is of a clock that never goes back.
  ThreadJob Of(pid_t thread, int64_t now_ns);

 private:
  const Look look_;
  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace isozone
