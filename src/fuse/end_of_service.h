// EndOfService: the end that a daemon waits for. Either a signal asks it to end (SIGINT, SIGTERM, SIGHUP), or there is
// nothing left to serve.
//
// The signals are held back in all threads that are made after this object, so that none of them ends the process while
// it writes.
//
// Thread safety: made, waited on and destroyed by one thread; any thread may call NothingLeft.
#pragma once

#include <csignal>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace isozone {

class EndOfService {
 public:
  EndOfService();
  ~EndOfService();
  EndOfService(const EndOfService&) = delete;
  EndOfService& operator=(const EndOfService&) = delete;

  // Waits for the end. Returns true if it is a signal, false if nothing is left to serve. kIoError if it cannot wait.
  Result<bool> Wait();
  // Says that there is nothing left to serve.
  void NothingLeft();

 private:
  sigset_t signals_{};
  sigset_t before_{};
  FileDescriptor signal_;
  FileDescriptor nothing_left_;
};

}  // namespace isozone
