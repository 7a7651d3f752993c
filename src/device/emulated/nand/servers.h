// FifoServer and WorkQueue: the two kinds of resources in the timing model. Times are nanoseconds of one clock.
//
// Both also give a lower bound of the time at which work can end. A bound stays valid whatever comes later: work is
// served in order of arrival, so later work only delays work that comes after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/units.h"

namespace isozone {

// Returns the nanoseconds that `bytes` take at a rate. A rate of 0 means no limit, so the result is 0.
inline int64_t DurationOf(uint64_t bytes, uint64_t bytes_per_second) {
  __extension__ using Wide = unsigned __int128;
  if (bytes_per_second == 0) return 0;
  return static_cast<int64_t>(Wide{bytes} * kSecondNs / bytes_per_second);
}

// Serves work in order of arrival, one piece at a time, with durations known at arrival: a channel, a link. It needs no
// queue, since the end of each piece is known as soon as it arrives.
class FifoServer {
 public:
  // Takes work at `now`, which never goes back. Returns the time at which it ends.
  int64_t Serve(int64_t now, int64_t duration) { return free_at_ = EarliestEnd(now, duration); }
  // Returns the earliest end of work that arrives at `arrival` or later and has not arrived yet.
  int64_t EarliestEnd(int64_t arrival, int64_t duration) const { return std::max(arrival, free_at_) + duration; }

 private:
  int64_t free_at_ = 0;
};

// Serves jobs in order of arrival, one at a time, if only the least duration of a job is known in advance: the array of
// a die, whose reads also wait for the channel, and the intake of its write buffer.
//
// Every job has a mark: the sum of the least durations of all jobs since the beginning, up to and including it.
// `shift_` maps marks to times: no queued job ends before its mark + shift_. `shift_` only grows.
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

  // Notes that the job at the front does not end before `time`.
  void DelayFront(int64_t time) { shift_ = std::max(shift_, time - jobs_.front().first); }

  // Returns the earliest end of the job with this mark. It is exact once DelayFront was called with the job's real end.
  int64_t EarliestEnd(int64_t mark) const { return mark + shift_; }
  // Returns the earliest time at which a job that is pushed at `arrival` or later can start.
  int64_t EarliestStart(int64_t arrival) const { return std::max(arrival, total_ + shift_); }

 private:
  std::deque<std::pair<int64_t, Job>> jobs_;  // each with its mark
  int64_t total_ = 0;                         // the mark of the last job ever pushed
  int64_t shift_ = 0;
};

}  // namespace isozone
