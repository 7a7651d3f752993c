// StatsFile: the statistics file of a mounted file system: stats_file= of a URI.
//
// It is written at once, every kIntervalNs, and at the end. A reader always finds a complete document: new content is
// written to NAME.new, which is then renamed. That is impossible for anything but a plain file (/dev/stdout, a pipe, a
// link), which is therefore written only at the end.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"
#include "store/io/alarm_clock.h"

namespace isozone {

class StatsFile {
 public:
  static constexpr int64_t kIntervalNs = 10 * kSecondNs;

  // `path` must be absolute; if it is empty, nothing is ever written. `json` returns the content of the file. It is
  // called on the thread of `clock` until Finish, and by Finish.
  StatsFile(std::string path, std::function<Result<std::string>()> json,
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
  void SetAlarm(int64_t at_ns);
  void Ring();
  Status Replace(const std::string& json) const ISOZONE_REQUIRES(mu_);

  const std::string path_;
  const std::function<Result<std::string>()> json_;
  const std::unique_ptr<AlarmClock> clock_;
  Mutex mu_;  // serialises writes
  bool failed_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
