#include "isozone/stop_signals.h"

#include <atomic>

namespace isozone::cli {
namespace {

std::atomic<int> raised{0};  // 0: none
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

}  // namespace

StopSignals::StopSignals() {
  raised = 0;
  struct sigaction action {};
  action.sa_handler = [](int number) { raised = number; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    // nohup(1) and background shells ignore some signals, which must stay ignored.
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  if (raised != 0) ::raise(raised);
}

bool StopSignals::Raised() { return raised != 0; }

}  // namespace isozone::cli
