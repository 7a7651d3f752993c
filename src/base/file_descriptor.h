// FileDescriptor: an open file, closed with the object that holds it.
#pragma once

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

}  // namespace isozone
