// The statistics file of a mounted file system: stats_file= and stats_interval= of a URI.
//
// It is written every interval, and at the end. A reader always finds a whole document: what is new is written to
// NAME.new, which is then renamed. That cannot be done with what is no plain file (/dev/stdout, a pipe, a link), which is
// therefore written at the end only.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "io/alarm_clock.h"

namespace isozone {

class StatsFile {
 public:
  // `path` is absolute; empty: nothing is ever written. `json` gives what is to be in it, on the thread of `clock`, every
  // `interval_s` seconds (0: never) from now on until Finish, and in Finish.
  StatsFile(std::string path, uint64_t interval_s, std::function<std::string()> json,
            std::unique_ptr<AlarmClock> clock = std::make_unique<ThreadAlarmClock>());
  ~StatsFile();
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  // Writes it for the last time: `json` is not called when this has returned, unless this is called again. Says on
  // standard error where it cannot be written.
  void Finish();

  // kInvalidArgument where `path`, absolute, cannot be written. Touches nothing.
  static Status Check(const std::string& path);

 private:
  void Ring();
  Status Replace(const std::string& json) const ISOZONE_REQUIRES(mu_);

  const std::string path_;
  const uint64_t interval_s_;
  const std::function<std::string()> json_;
  const std::unique_ptr<AlarmClock> clock_;
  Mutex mu_;  // one write at a time
  bool failed_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
