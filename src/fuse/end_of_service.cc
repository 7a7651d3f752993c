#include "fuse/end_of_service.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace isozone {

EndOfService::EndOfService() {
  ::sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  signal_ = FileDescriptor(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  nothing_left_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

// Signals that came after the first one are forgotten: the process is about to end anyway.
EndOfService::~EndOfService() {
  signalfd_siginfo taken{};
  while (::read(signal_.get(), &taken, sizeof(taken)) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<bool> EndOfService::Wait() {
  std::array<pollfd, 2> waited = {{{signal_.get(), POLLIN, 0}, {nothing_left_.get(), POLLIN, 0}}};
  while (::poll(waited.data(), waited.size(), -1) < 0) {
    if (errno != EINTR) return Status::FromErrno(errno, "cannot wait for signals");
  }
  return waited[1].revents == 0;
}

void EndOfService::NothingLeft() {
  const uint64_t one = 1;
  (void)!::write(nothing_left_.get(), &one, sizeof(one));  // fails only if it was told 2^64 - 2 times before
}

}  // namespace isozone
