// FileDescriptor: an open file, closed with the object that holds it.
#pragma once

#include <cstdint>

namespace isozone {

// An open file descriptor, closed with this object; -1 means none. It is never the number of a standard stream: if a
// process has closed one of these, whatever it prints would otherwise go into the file.
class FileDescriptor {
 public:
  // Takes over `fd`. get() may be -1 afterwards, with errno set.
  explicit FileDescriptor(int fd = -1);
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// Gives storage to the first `bytes` of a file; an errno, or 0. No signal of this thread interrupts it: the kernel
// would give back all that it has done, so that a timer which comes often enough could interrupt every try.
int AllocateStart(int fd, uint64_t bytes);

}  // namespace isozone
