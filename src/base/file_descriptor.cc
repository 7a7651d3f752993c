#include "base/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace isozone {
namespace {

// Of an allocation that the kernel breaks off.
constexpr int kMostTries = 100;

}  // namespace

FileDescriptor::FileDescriptor(int fd) : fd_(fd) {
  if (fd < 0 || fd > STDERR_FILENO) return;
  fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int AllocateStart(int fd, uint64_t bytes) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  // tmpfs also answers EINTR where io_uring has work for this thread, which the kernel does on the way back.
  int error = EINTR;
  for (int tries = 0; error == EINTR && tries < kMostTries; ++tries) {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace isozone
