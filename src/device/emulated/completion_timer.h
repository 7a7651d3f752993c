// CompletionTimer: completes commands at the times that the timing model computes, on a thread that sleeps until the
// next completion is due.
//
// A completion is never early; lateness() says how late completions are. A kernel wakes a thread some ten microseconds
// after the time that the thread asked for. So the thread asks for an earlier time (by `lead_ns_`, the running median
// of these delays) and spins until the completion is due, for at most kMaxLeadNs. Without a model, a command takes only
// its own delay.
//
// The device must not be slow because the host is busy. So the thread asks the kernel (Linux 6.12 and later; others
// ignore the request) to run it soon and briefly when it wakes, rather than late and for long (`RunBrieflyAndSoon`).
// That needs no privilege, and does not give the thread more processor time than others. The thread does not yield
// while it spins: a kernel that counts yielded time as used (Linux 6.18) would then run others for milliseconds.
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
#include "base/status.h"
#include "base/units.h"
#include "device/emulated/nand/command_model.h"

namespace isozone {

class CompletionTimer {
 public:
  // Is called on the timer's thread, without its lock, with the tickets that are due and the bytes programmed so far.
  using Complete = std::function<void(std::span<const uint64_t> tickets, const MediaCounts& media)>;

  // `model` may be null. The modelled device runs `speed` (> 0) times as fast as real time. Start must follow.
  CompletionTimer(std::unique_ptr<CommandModel> model, double speed, Complete complete);
  ~CompletionTimer();
  CompletionTimer(const CompletionTimer&) = delete;
  CompletionTimer& operator=(const CompletionTimer&) = delete;

  // Starts the thread. Fails with kIoError if the system has none.
  Status Start();

  // Starts a command that arrived at `arrived_ns` (MonotonicNs(), not after now). What the host has spent on it since,
  // such as copying its data, is part of its time. The command takes `delay_ns` of real time longer than the model
  // says. `ticket` must be unique among the commands in flight.
  void Submit(const TimingOp& op, int64_t arrived_ns, int64_t delay_ns, uint64_t ticket);

  // Stops the thread. Commands that have not completed by then never complete, and none may be submitted any more.
  // Returns the bytes that are programmed once the modelled device has executed all commands.
  MediaCounts Stop();

  // Calls `look` with the model while nothing else uses it. There must be a model.
  void WithModel(const std::function<void(CommandModel&)>& look);

  // Nanoseconds between the time when a completion was due and its delivery.
  Histogram::Snapshot lateness() const { return lateness_.Take(); }

 private:
  struct Due {
    int64_t time_ns;
    uint64_t ticket;
    bool operator>(const Due& other) const { return time_ns > other.time_ns; }
  };

  void Run();
  // Waits until shortly before `due_ns`; may return earlier.
  void SleepBefore(int64_t due_ns) ISOZONE_REQUIRES(mu_);
  // Moves the commands that are due at `now_ns` to `ready`.
  void Collect(int64_t now_ns, std::vector<Due>& ready) ISOZONE_REQUIRES(mu_);
  // Returns the earliest real time at which a command can complete.
  int64_t NextDue() const ISOZONE_REQUIRES(mu_);
  int64_t ToModel(int64_t real_ns) const;
  int64_t ToReal(int64_t model_ns) const;

  const double speed_;
  const int64_t origin_ns_;  // the real time at which the model's time is 0
  const Complete complete_;
  Histogram lateness_;

  mutable Mutex mu_;
  CondVar wake_;
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  int64_t sleeps_until_ ISOZONE_GUARDED_BY(mu_) = 0;  // the time until which the thread sleeps; 0 while it runs
  int64_t lead_ns_ ISOZONE_GUARDED_BY(mu_) = 50 * kMicrosecondNs;
  const std::unique_ptr<CommandModel> model_ ISOZONE_PT_GUARDED_BY(mu_);
  int64_t model_ns_ ISOZONE_GUARDED_BY(mu_) = 0;  // the model has run up to this time, and cannot go back
  std::unordered_map<uint64_t, int64_t> delays_ ISOZONE_GUARDED_BY(mu_);  // by ticket in the model; only if not 0
  std::priority_queue<Due, std::vector<Due>, std::greater<>> delayed_ ISOZONE_GUARDED_BY(mu_);
  std::vector<TimingCompletion> completed_ ISOZONE_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace isozone
