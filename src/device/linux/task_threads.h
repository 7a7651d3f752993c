// TaskThreads: threads for calls that block in the kernel. Tasks start in the order in which they were added. A
// thread is started when a task finds none idle. One is there from the beginning, so that tasks run also where the
// system has no further threads.
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
  // `name`: of the threads, at most 15 bytes.
  TaskThreads(std::string name, uint32_t count);
  // Runs what was added, then ends the threads. Must not be called from a task.
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Runs `task` here where the system has not a single thread for it.
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
