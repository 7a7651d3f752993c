// TaskThreads: threads for calls that block in the kernel. Tasks start in the order in which they were added. A thread
// is started when a task finds none idle. One is started at once, so that tasks run even if the system has no further
// threads.
//
// Thread safety: any thread may call Add, also from a task.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace isozone {

class TaskThreads {
 public:
  // Has at most `count` threads, which are called `name`, of at most 15 bytes.
  TaskThreads(std::string name, uint32_t count);
  // Runs the tasks that were added, then ends the threads. Must not be called from a task.
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Queues `task`. Runs it in the calling thread if the system has not a single thread for it.
  void Add(std::function<void()> task);

 private:
  bool AddThread() ISOZONE_REQUIRES(mu_);
  void Run();

  const std::string name_;
  const uint32_t count_;
  Mutex mu_;
  CondVar changed_;  // signalled when tasks_ or stop_ changes
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  uint32_t idle_ ISOZONE_GUARDED_BY(mu_) = 0;  // threads that wait for a task
  std::deque<std::function<void()>> tasks_ ISOZONE_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
