// BackgroundStart: a process that goes on in the background, and tells the one that started it when it is ready.
//
//   Fork()           the process splits in two. The first waits and returns what the second reports: its exit code then
//                    says whether the service is up. The second goes on, in the same group of processes: an automount
//                    lets only those of the one that it started through to the directory.
//   ReportReady()    in the second: the first returns OK. From here on the second has a session of its own, standard
//                    input, output and error lead nowhere, and the log goes to syslog.
//   ReportFailure()  in the second: the first returns this status.
//
// A second process that ends without a report makes the first one return kIoError.
//
// Thread safety: one thread, and at Fork the only one of the process.
#pragma once

#include <memory>

#include <spdlog/sinks/dist_sink.h>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace isozone {

class BackgroundStart {
 public:
  // Splits the process in two. Returns true in the one that goes on. Returns false in the other one, with what the
  // first reported in `report`. Nothing may have been logged before.
  Result<bool> Fork(Status& report);
  void ReportReady();
  void ReportFailure(const Status& status);

 private:
  void Send(const Status& status);
  static Status Receive(int fd);

  FileDescriptor report_;
  FileDescriptor nowhere_;                            // where the standard streams lead once it is ready
  std::shared_ptr<spdlog::sinks::dist_sink_mt> log_;  // writes to standard error at first, then to syslog
};

}  // namespace isozone
