#include "rocksdb/adapter/stats_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/log.h"

namespace isozone {
namespace {

// Whether `path` can be replaced by renaming: it is a plain file, or does not exist.
bool IsReplaceable(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? S_ISREG(found.st_mode) : errno == ENOENT;
}

Status WriteTo(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file ? Status::Ok() : Status::FromErrno(errno, "cannot write " + path);
}

}  // namespace

StatsFile::StatsFile(std::string path, std::function<Result<std::string>()> json, std::unique_ptr<AlarmClock> clock)
    : path_(std::move(path)), json_(std::move(json)), clock_(std::move(clock)) {
  if (path_.empty() || !IsReplaceable(path_)) return;
  clock_->OnRing([this](uint32_t) { Ring(); });
  SetAlarm(clock_->Now());
}

StatsFile::~StatsFile() { clock_->Stop(); }

void StatsFile::Ring() {
  {
    const MutexLock lock(mu_);
    const Result<std::string> json = json_();
    const Status status = json.ok() ? Replace(*json) : json.status();
    if (!status.ok() && !failed_) Log().warn("stats_file: {}", status.ToString());
    failed_ = !status.ok();
  }
  SetAlarm(clock_->Now() + kIntervalNs);
}

void StatsFile::SetAlarm(int64_t at_ns) {
  if (clock_->RingAt(at_ns, 0)) return;
  Log().warn("stats_file: {} is written at the end only", path_);
}

void StatsFile::Finish() {
  clock_->Stop();
  if (path_.empty()) return;
  const MutexLock lock(mu_);
  const Result<std::string> json = json_();
  if (json.ok() && IsReplaceable(path_) && Replace(*json).ok()) return;
  // If its directory cannot be written, perhaps the file itself can.
  const Status status = json.ok() ? WriteTo(path_, *json) : json.status();
  if (!status.ok()) std::fprintf(stderr, "isozone: stats_file: %s\n", status.ToString().c_str());
}

Status StatsFile::Replace(const std::string& json) const {
  const std::string next = path_ + ".new";
  Status status = WriteTo(next, json);
  if (status.ok() && std::rename(next.c_str(), path_.c_str()) != 0) {
    status = Status::FromErrno(errno, "cannot write " + path_);
  }
  if (!status.ok()) ::unlink(next.c_str());
  return status;
}

Status StatsFile::Check(const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  const bool exists = access(path.c_str(), W_OK) == 0;
  const bool can_be_made = !exists && errno == ENOENT && access(directory.c_str(), W_OK | X_OK) == 0;
  if ((exists && !is_directory) || can_be_made) return Status::Ok();
  return Status::InvalidArgument("stats_file=" + path + " cannot be written: give a file in a directory that exists");
}

}  // namespace isozone
