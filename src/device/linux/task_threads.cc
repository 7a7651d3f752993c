#include "device/linux/task_threads.h"

#include <sys/prctl.h>

#include <utility>

#include "base/cpu_affinity.h"
#include "base/thread.h"

namespace isozone {

TaskThreads::TaskThreads(std::string name, uint32_t count) : name_(std::move(name)), count_(count) {
  const MutexLock lock(mu_);
  threads_.reserve(count_);
  AddThread();
}

bool TaskThreads::AddThread() {
  auto thread = StartThread(name_, [this] { Run(); });
  if (!thread.ok()) return false;
  threads_.push_back(std::move(thread).value());
  return true;
}

TaskThreads::~TaskThreads() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mu_);
    stop_ = true;
    threads.swap(threads_);
    changed_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

void TaskThreads::Add(std::function<void()> task) {
  {
    const MutexLock lock(mu_);
    const bool wanted = !stop_ && tasks_.size() >= idle_ && threads_.size() < count_;
    // Where the system has no further thread, one of those that exist takes the task.
    if ((wanted && AddThread()) || !threads_.empty()) {
      tasks_.push_back(std::move(task));
      changed_.Signal();
      return;
    }
  }
  task();
}

void TaskThreads::Run() {
  RunWhereProcessMay();
  ::prctl(PR_SET_NAME, name_.c_str());
  const MutexLock lock(mu_);
  for (;;) {
    if (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      const MutexUnlock unlock(mu_);
      task();
    } else if (stop_) {
      return;
    } else {
      ++idle_;
      changed_.Wait(mu_);
      --idle_;
    }
  }
}

}  // namespace isozone
