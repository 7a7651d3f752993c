// The two kinds of resource that the timing model is made of. Times are nanoseconds of one clock.
//
// Both also say how early work can end at best, given all they know. Such a bound stays one whatever comes later: work
// is served in order of arrival, so later work only ever makes other later work wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/units.h"

namespace isozone {

// Nanoseconds that `bytes` take at a rate; nothing at rate 0, which stands for no limit.
inline int64_t DurationOf(uint64_t bytes, uint64_t bytes_per_second) {
  __extension__ using Wide = unsigned __int128;
  if (bytes_per_second == 0) return 0;
  return static_cast<int64_t>(Wide{bytes} * kSecondNs / bytes_per_second);
}

// Serves in order of arrival, one at a time, with durations known at arrival: a channel, a link. Nothing needs to be
// queued, for the end of each piece of work is known as soon as it arrives.
class FifoServer {
 public:
  // Takes work at `now`, which never goes back; returns when it is done.
  int64_t Serve(int64_t now, int64_t duration) { return free_at_ = EarliestEnd(now, duration); }
  // When work that arrives at `arrival` or later, but has not yet, is done at the earliest.
  int64_t EarliestEnd(int64_t arrival, int64_t duration) const { return std::max(arrival, free_at_) + duration; }

 private:
  int64_t free_at_ = 0;
};

// Jobs in order of arrival, each worked on when those before it have ended, for a duration of which only the least is
// known in advance: the array of a die, whose reads also wait for the channel; the intake of its write buffer.
//
// Every job is marked with the least durations of all jobs up to it, summed up since the beginning. `shift_` maps marks
// to times: the job at the front ends at mark + shift_ at the earliest, and so do all behind it. It only grows.
template <typename Job>
class WorkQueue {
 public:
  bool empty() const { return jobs_.empty(); }
  Job& front() { return jobs_.front().second; }
  const Job& front() const { return jobs_.front().second; }

  // Adds a job at `now` and returns its mark.
  int64_t Push(int64_t now, Job job, int64_t least_duration) {
    if (jobs_.empty()) shift_ = std::max(shift_, now - total_);
    total_ += least_duration;
    jobs_.emplace_back(total_, std::move(job));
    return total_;
  }
  void Pop() { jobs_.pop_front(); }

  // The job at the front is known not to end before `time`.
  void DelayFront(int64_t time) { shift_ = std::max(shift_, time - jobs_.front().first); }

  // When a job that is queued ends at the earliest; exact once DelayFront was told the end of it.
  int64_t EarliestEnd(int64_t mark) const { return mark + shift_; }
  // When a job that is pushed at `arrival` or later can be worked on at the earliest.
  int64_t EarliestStart(int64_t arrival) const { return std::max(arrival, total_ + shift_); }

 private:
  std::deque<std::pair<int64_t, Job>> jobs_;  // with their marks
  int64_t total_ = 0;                         // the mark of the last job ever pushed
  int64_t shift_ = 0;
};

}  // namespace isozone
