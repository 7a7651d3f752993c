// StopSignals: while an object exists, it holds back signals that ask the process to end (SIGINT, SIGTERM, SIGHUP), for
// a command that has something to undo first. The second signal of a kind ends the process at once.
//
// Thread safety: only one object at a time, made and destroyed by the first thread; any thread may call Raised().
#pragma once

#include <array>
#include <csignal>

namespace isozone::cli {

class StopSignals {
 public:
  StopSignals();
  // If a signal was held back, ends the process by it.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool Raised();

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace isozone::cli
