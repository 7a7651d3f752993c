// EndSignals: holds the signals that ask the process to end (SIGINT, SIGTERM, SIGHUP) back in all threads, so that one
// of them can wait for them. For commands that serve until they are told to end. A signal that the process was started
// to ignore, as nohup(1) has it with SIGHUP, stays ignored. They are held back until the process has ended: timeout(1)
// sends its signal twice, and the second one must not turn an orderly end into a failure.
//
// Thread safety: made by the first thread, before all others; any thread may wait.
#pragma once

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace isozone::cli {

class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      ::sigaction(number, nullptr, &action);
      if (action.sa_handler != SIG_IGN) ::sigaddset(&signals_, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Waits for a signal. Returns whether one came within `time`.
  bool Wait(std::chrono::milliseconds time) const {
    const timespec limit{time.count() / 1000, (time.count() % 1000) * 1'000'000};
    return ::sigtimedwait(&signals_, nullptr, &limit) > 0;
  }
  void Wait() const {
    int number = 0;
    ::sigwait(&signals_, &number);
  }

 private:
  sigset_t signals_{};
};

}  // namespace isozone::cli
