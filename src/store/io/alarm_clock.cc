#include "store/io/alarm_clock.h"

#include <sys/prctl.h>

#include "base/cpu_affinity.h"
#include "base/log.h"
#include "base/thread.h"

namespace isozone {

bool ThreadAlarmClock::RingAt(int64_t at_ns, uint32_t what) {
  const MutexLock lock(mu_);
  if (stop_) return true;
  if (!thread_) {
    auto thread = StartThread("alarms", [this] { Run(); });
    if (!thread.ok()) {
      Log().warn("{}", thread.status().message());
      return false;
    }
    thread_ = std::move(thread).value();
  }
  const bool first = alarms_.empty() || at_ns < alarms_.top().at_ns;
  alarms_.push({at_ns, what});
  if (first) changed_.Signal();
  return true;
}

void ThreadAlarmClock::Stop() {
  std::optional<std::thread> thread;
  {
    const MutexLock lock(mu_);
    stop_ = true;
    thread.swap(thread_);
    changed_.Signal();
  }
  if (thread) thread->join();
}

void ThreadAlarmClock::Run() {
  RunWhereProcessMay();
  ::prctl(PR_SET_NAME, "isozone-alarm");
  const MutexLock lock(mu_);
  while (!stop_) {
    if (alarms_.empty()) {
      changed_.Wait(mu_);
    } else if (const Alarm alarm = alarms_.top(); alarm.at_ns > Now()) {
      changed_.WaitUntil(mu_, alarm.at_ns);
    } else {
      alarms_.pop();
      const MutexUnlock unlock(mu_);
      ring_(alarm.what);
    }
  }
}

}  // namespace isozone
