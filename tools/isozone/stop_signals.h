// Signals that ask the process to end (SIGINT, SIGTERM, SIGHUP) are held back while one of these exists, for a command
// that has something to undo first. The second one of a kind ends the process at once.
//
// Thread safety: one at a time in the process, made and destroyed by its first thread; Raised() from any.
#pragma once

#include <array>
#include <csignal>

namespace isozone::cli {

class StopSignals {
 public:
  StopSignals();
  // Ends the process by the signal that was held back, if there was one.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool Raised();

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace isozone::cli
