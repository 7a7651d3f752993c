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

// Allocates storage for the first `bytes` of a file, and returns 0 or an errno. Signals to this thread wait meanwhile:
// the kernel would undo all that it has done, so a timer that comes often enough could interrupt every try.
int AllocateStart(int fd, uint64_t bytes);

}  // namespace isozone
