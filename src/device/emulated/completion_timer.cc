#include "device/emulated/completion_timer.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"

namespace isozone {
namespace {

// Longer than a device takes to execute all that its queues can hold.
constexpr int64_t kRunOutNs = 3600 * kSecondNs;
// The lead moves by this much towards the delay of each wake-up, so it stays near their median. Spinning takes at most
// kMaxLeadNs of processor time for each completion.
constexpr int64_t kLeadStepNs = kMicrosecondNs;
constexpr int64_t kMaxLeadNs = 100 * kMicrosecondNs;
constexpr int64_t kSliceNs = 100 * kMicrosecondNs;  // the shortest slice that Linux gives

// Asks for a short time slice. Among the threads that had less than their share, the scheduler runs the one with the
// shortest slice first. A kernel without that feature ignores the request.
void RunBrieflyAndSoon() {
  // As in linux/sched/types.h, which cannot be included together with <sched.h>.
  struct Attributes {
    uint32_t size = sizeof(Attributes);
    uint32_t policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 0;
    uint64_t deadline = 0;
    uint64_t period = 0;
  };
  Attributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != 0) return;  // whoever started the process has chosen another policy
  attributes.size = sizeof(attributes);
  attributes.runtime = kSliceNs;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Spins for about a microsecond, most of which another thread on the same core may use.
void SpinBriefly() {
  for (int i = 0; i < 25; ++i) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
}

}  // namespace

CompletionTimer::CompletionTimer(std::unique_ptr<CommandModel> model, double speed, Complete complete)
    : speed_(speed), origin_ns_(MonotonicNs()), complete_(std::move(complete)), model_(std::move(model)) {}

Status CompletionTimer::Start() {
  ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("the time of the emulated device", [this] { Run(); }));
  return Status::Ok();
}

CompletionTimer::~CompletionTimer() { Stop(); }

MediaCounts CompletionTimer::Stop() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    wake_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mu_);
  if (model_ == nullptr) return {};
  completed_.clear();
  model_->AdvanceTo(ToModel(MonotonicNs()) + kRunOutNs, completed_);
  return model_->Media();
}

void CompletionTimer::WithModel(const std::function<void(CommandModel&)>& look) {
  const MutexLock lock(mu_);
  look(*model_);
}

// Rounds so that a completion at time m of the model is due at the first real nanosecond by which the model has passed
// m.
int64_t CompletionTimer::ToModel(int64_t real_ns) const {
  if (speed_ == 1) return real_ns - origin_ns_;
  return static_cast<int64_t>(std::floor(static_cast<double>(real_ns - origin_ns_) * speed_));
}

int64_t CompletionTimer::ToReal(int64_t model_ns) const {
  if (speed_ == 1) return origin_ns_ + model_ns;
  return origin_ns_ + static_cast<int64_t>(std::ceil(static_cast<double>(model_ns) / speed_)) + 1;
}

void CompletionTimer::Submit(const TimingOp& op, int64_t arrived_ns, int64_t delay_ns, uint64_t ticket) {
  const MutexLock lock(mu_);
  if (model_ == nullptr) {
    delayed_.push({arrived_ns + delay_ns, ticket});
  } else {
    if (delay_ns != 0) delays_.emplace(ticket, delay_ns);
    model_ns_ = std::max(model_ns_, ToModel(arrived_ns));
    model_->Submit(model_ns_, op, ticket);
  }
  if (NextDue() < sleeps_until_) wake_.Signal();
}

int64_t CompletionTimer::NextDue() const {
  int64_t next = delayed_.empty() ? CommandModel::kNever : delayed_.top().time_ns;
  if (model_ != nullptr) {
    const int64_t bound = model_->NextCompletionBound();
    if (bound != CommandModel::kNever) next = std::min(next, ToReal(bound));
  }
  return next;
}

void CompletionTimer::Collect(int64_t now_ns, std::vector<Due>& ready) {
  if (model_ != nullptr) {
    completed_.clear();
    model_ns_ = std::max(model_ns_, ToModel(now_ns));
    model_->AdvanceTo(model_ns_, completed_);
    for (const TimingCompletion& completion : completed_) {
      const auto delay = delays_.extract(completion.ticket);
      const int64_t due_ns = ToReal(completion.time_ns) + (delay ? delay.mapped() : 0);
      delayed_.push({due_ns, completion.ticket});
    }
  }
  while (!delayed_.empty() && delayed_.top().time_ns <= now_ns) {
    ready.push_back(delayed_.top());
    delayed_.pop();
  }
}

void CompletionTimer::SleepBefore(int64_t due_ns) {
  if (due_ns == CommandModel::kNever) {
    sleeps_until_ = due_ns;
    wake_.Wait(mu_);
  } else if (const int64_t until_ns = due_ns - lead_ns_; until_ns > MonotonicNs()) {
    sleeps_until_ = until_ns;
    wake_.WaitUntil(mu_, until_ns);
    const int64_t woken_after_ns = MonotonicNs() - until_ns;
    if (woken_after_ns >= 0) {  // otherwise a signal woke the thread
      const int64_t step_ns = woken_after_ns > lead_ns_ ? kLeadStepNs : -kLeadStepNs;
      lead_ns_ = std::clamp<int64_t>(lead_ns_ + step_ns, 0, kMaxLeadNs);
    }
  } else {
    const MutexUnlock unlock(mu_);
    SpinBriefly();
  }
  sleeps_until_ = 0;
}

void CompletionTimer::Run() {
  ::prctl(PR_SET_NAME, "isozone-ssd");
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // wake at the deadline, not up to 50 us after it
  RunBrieflyAndSoon();
  std::vector<Due> ready;
  std::vector<uint64_t> tickets;
  const MutexLock lock(mu_);
  while (!stop_) {
    ready.clear();
    Collect(MonotonicNs(), ready);
    if (ready.empty()) {
      SleepBefore(NextDue());
      continue;
    }
    const MediaCounts media = model_ == nullptr ? MediaCounts() : model_->Media();
    const MutexUnlock unlock(mu_);
    const int64_t now_ns = MonotonicNs();
    tickets.clear();
    for (const Due& due : ready) {
      tickets.push_back(due.ticket);
      lateness_.Add(static_cast<uint64_t>(now_ns - due.time_ns));
    }
    complete_(tickets, media);
  }
}

}  // namespace isozone
