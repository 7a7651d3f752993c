#include "crash/turns.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace isozone::crash {
namespace {

// How often a thread has gone to sleep, if it is asleep now. The kernel says that a thread is running from before the
// call returns that wakes it.
std::optional<uint64_t> SleepsOf(pid_t thread) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/status", thread);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;  // it has ended
  std::array<char, 4096> text{};
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  if (length <= 0) return 0;
  constexpr std::string_view kSwitches = "\nvoluntary_ctxt_switches:";
  const std::string_view status(text.data(), static_cast<size_t>(length));
  const size_t switches = status.find(kSwitches);
  if (status.find("\nState:\tS") == std::string_view::npos || switches == std::string_view::npos) return std::nullopt;
  return std::strtoull(status.data() + switches + kSwitches.size(), nullptr, 10);
}

std::vector<pid_t> Threads() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  while (const dirent* task = readdir(tasks.get())) {
    if (task->d_name[0] != '.') threads.push_back(static_cast<pid_t>(std::strtol(task->d_name, nullptr, 10)));
  }
  return threads;
}

}  // namespace

Turns::SpinLock::SpinLock(std::atomic_flag& flag) : flag_(flag) {
  while (flag_.test_and_set(std::memory_order_acquire)) sched_yield();
}

Turns::Turns() : owner_(gettid()) {}

void Turns::Await() {
  const pid_t self = gettid();
  {
    const SpinLock lock(lock_);
    queue_.waiting.push_back(self);
    ++queue_.changes;
  }
  for (;; sched_yield()) {
    const Queue seen = Snapshot();
    if (!IsFirst(self, seen) || !OthersAreAsleep(self, seen)) continue;
    const SpinLock lock(lock_);
    if (queue_.changes != seen.changes) continue;
    std::erase(queue_.waiting, self);
    ++queue_.changes;
    return;
  }
}

void Turns::AwaitIdle() {
  const auto set_idle = [this](bool idle) {
    const SpinLock lock(lock_);
    queue_.owner_is_idle = idle;
    ++queue_.changes;
  };
  set_idle(true);
  for (;; sched_yield()) {
    const Queue seen = Snapshot();
    if (seen.waiting.empty() && OthersAreAsleep(owner_, seen) && Snapshot().changes == seen.changes) break;
  }
  set_idle(false);
}

Turns::Queue Turns::Snapshot() {
  const SpinLock lock(lock_);
  return queue_;
}

bool Turns::IsFirst(pid_t thread, const Queue& queue) const {
  const bool owner_waits = std::find(queue.waiting.begin(), queue.waiting.end(), owner_) != queue.waiting.end();
  return thread == (owner_waits ? owner_ : *std::min_element(queue.waiting.begin(), queue.waiting.end()));
}

// Looked at twice: who was asleep both times, and has not gone to sleep again in between, was so all the time.
bool Turns::OthersAreAsleep(pid_t self, const Queue& queue) const {
  std::vector<pid_t> at_rest = queue.waiting;
  at_rest.push_back(self);
  if (queue.owner_is_idle) at_rest.push_back(owner_);
  std::vector<std::pair<pid_t, uint64_t>> asleep;
  for (const pid_t thread : Threads()) {
    if (std::find(at_rest.begin(), at_rest.end(), thread) != at_rest.end()) continue;
    const std::optional<uint64_t> sleeps = SleepsOf(thread);
    if (!sleeps) return false;
    asleep.emplace_back(thread, *sleeps);
  }
  return std::all_of(asleep.begin(), asleep.end(),
                     [](const auto& thread) { return SleepsOf(thread.first) == thread.second; });
}

}  // namespace isozone::crash
