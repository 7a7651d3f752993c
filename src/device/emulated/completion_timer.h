// Completes commands when the timing model says that the device would: one thread that sleeps until the next
// completion can happen.
//
// A completion is never early. lateness() says how late they are. A kernel wakes a thread some ten microseconds after the
// time that it asked for, so the thread asks for that much less (`lead_ns_`, the running median of what waking took) and
// spins until the time has come, for at most kMaxLeadNs. With no model, commands take no time but their delay.
//
// A device must not be slow because the host is busy. So the thread asks the kernel (Linux 6.12 on; others ignore it) to
// be run at once and briefly when it wakes, rather than late and for long (`RunBrieflyAndSoon`). That needs no privilege
// and gives it no more of a processor than others get. It does not yield while it waits: a kernel that counts what is
// given up as used (Linux 6.18) then lets others run for milliseconds.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/units.h"
#include "nand/command_model.h"

namespace isozone {

class CompletionTimer {
 public:
  // Called on the timer's thread, without its lock, with what is due and the bytes programmed so far.
  using Complete = std::function<void(std::span<const uint64_t> tickets, uint64_t media_bytes_written)>;

  // `model` may be null. The modelled device runs `speed` (> 0) times as fast as real time.
  CompletionTimer(std::unique_ptr<CommandModel> model, double speed, Complete complete);
  ~CompletionTimer();
  CompletionTimer(const CompletionTimer&) = delete;
  CompletionTimer& operator=(const CompletionTimer&) = delete;

  // Starts a command that came at `arrived_ns` (MonotonicNs(), not after now): what the host has spent on it since, such
  // as copying its data, is part of its time. It takes `delay_ns` of real time more than the model says. `ticket` is
  // unique among those in flight.
  void Submit(const TimingOp& op, int64_t arrived_ns, int64_t delay_ns, uint64_t ticket);

  // Stops the thread; what has not completed by then never does, and nothing is submitted any more. Returns the bytes
  // programmed once the modelled device has done all it was told to.
  uint64_t Stop();

  // Calls `look` with the model, which is not null, while nothing else uses it.
  void WithModel(const std::function<void(CommandModel&)>& look);

  // Nanoseconds from when a completion was due to when it was delivered.
  Histogram::Snapshot lateness() const { return lateness_.Take(); }

 private:
  struct Due {
    int64_t time_ns;
    uint64_t ticket;
    bool operator>(const Due& other) const { return time_ns > other.time_ns; }
  };

  void Run();
  // Waits until shortly before `due_ns`, or less.
  void SleepBefore(int64_t due_ns) ISOZONE_REQUIRES(mu_);
  // Moves what is due at `now_ns` to `ready`.
  void Collect(int64_t now_ns, std::vector<Due>& ready) ISOZONE_REQUIRES(mu_);
  // Nothing completes before this, in real time.
  int64_t NextDue() const ISOZONE_REQUIRES(mu_);
  int64_t ToModel(int64_t real_ns) const;
  int64_t ToReal(int64_t model_ns) const;

  const double speed_;
  const int64_t origin_ns_;  // real time of the model's 0
  const Complete complete_;
  Histogram lateness_;

  mutable Mutex mu_;
  CondVar wake_;
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  int64_t sleeps_until_ ISOZONE_GUARDED_BY(mu_) = 0;  // of the thread; 0 while it runs
  int64_t lead_ns_ ISOZONE_GUARDED_BY(mu_) = 50 * kMicrosecondNs;
  const std::unique_ptr<CommandModel> model_ ISOZONE_PT_GUARDED_BY(mu_);
  int64_t model_ns_ ISOZONE_GUARDED_BY(mu_) = 0;  // the model has run to here, and cannot go back
  std::unordered_map<uint64_t, int64_t> delays_ ISOZONE_GUARDED_BY(mu_);  // of those in the model, where not 0
  std::priority_queue<Due, std::vector<Due>, std::greater<>> delayed_ ISOZONE_GUARDED_BY(mu_);
  std::vector<TimingCompletion> completed_ ISOZONE_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace isozone
