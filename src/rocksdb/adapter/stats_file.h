// StatsFile: the statistics file of a mounted file system: stats_file= and stats_interval= of a URI.
//
// It is written every interval, and at the end. A reader always finds a complete document: new content is written to
// NAME.new, which is then renamed. That is impossible for anything but a plain file (/dev/stdout, a pipe, a link),
// which is therefore written only at the end.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "store/io/alarm_clock.h"

namespace isozone {

class StatsFile {
 public:
  // `path` must be absolute; if it is empty, nothing is ever written. `json` returns the content of the file. It is
  // called on the thread of `clock` every `interval_s` seconds (0: never) until Finish, and by Finish.
  StatsFile(std::string path, uint64_t interval_s, std::function<std::string()> json,
            std::unique_ptr<AlarmClock> clock = std::make_unique<ThreadAlarmClock>());
  ~StatsFile();
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  // Writes the file for the last time. Once it has returned, `json` is not called again, except by another Finish. If
  // the file cannot be written, says so on standard error.
  void Finish();

  // kInvalidArgument if `path`, which must be absolute, cannot be written. Changes nothing.
  static Status Check(const std::string& path);

 private:
  void SetAlarm();
  void Ring();
  Status Replace(const std::string& json) const ISOZONE_REQUIRES(mu_);

  const std::string path_;
  const uint64_t interval_s_;
  const std::function<std::string()> json_;
  const std::unique_ptr<AlarmClock> clock_;
  Mutex mu_;  // serialises writes
  bool failed_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
