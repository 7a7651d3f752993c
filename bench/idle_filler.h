// IdleFiller: how long a processor was idle, in a machine that has only one and whose time counts instructions.
//
// A thread fills the time in which nothing else wants the processor, and counts its looks, each of which is as many
// instructions as any other, and so as many nanoseconds. (The kernel's own idle time has interrupts in it, in some
// versions.)
//
// Thread safety: any thread may call FilledNs.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"

namespace isozone {

class IdleFiller {
 public:
  IdleFiller() : thread_([this] { Look(); }) {
    const int64_t begin_ns = MonotonicNs();
    const uint64_t before = looks_.load(std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const uint64_t looks = looks_.load(std::memory_order_relaxed) - before;
    look_ns_ = (MonotonicNs() - begin_ns) / static_cast<int64_t>(looks);  // ticks of the kernel are less than one
  }
  ~IdleFiller() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  IdleFiller(const IdleFiller&) = delete;
  IdleFiller& operator=(const IdleFiller&) = delete;

  // Nanoseconds that nothing else has wanted.
  int64_t FilledNs() const { return static_cast<int64_t>(looks_.load(std::memory_order_relaxed)) * look_ns_; }

 private:
  void Look() {
    const sched_param lowest{};
    if (const int error = ::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &lowest); error != 0) {
      fmt::print(stderr, "no thread can be had that takes only the time that nobody wants: {}\n", std::strerror(error));
      std::exit(1);
    }
    while (!stop_.load(std::memory_order_relaxed)) {
      looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> looks_{0};
  int64_t look_ns_ = 0;
  std::thread thread_;
};

}  // namespace isozone
