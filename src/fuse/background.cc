#include "fuse/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include "base/no_thread.h"

namespace isozone {

Result<bool> BackgroundStart::Fork(Status& report) {
  FileDescriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nowhere.get() < 0) return Status::FromErrno(errno, "cannot open /dev/null");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Status::FromErrno(errno, "cannot make a pipe");
  FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return NoThread("cannot start a process in the background", std::error_code(errno, std::generic_category()));
  }
  if (child == 0) {
    report_ = std::move(writer);
    nowhere_ = std::move(nowhere);
    log_ = std::make_shared<spdlog::sinks::dist_sink_mt>();
    log_->add_sink(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    spdlog::register_logger(std::make_shared<spdlog::logger>("isozone", log_));  // which base/log.h takes
    return true;
  }
  writer = FileDescriptor();
  report = Receive(reader.get());
  if (!report.ok()) ::waitpid(child, nullptr, 0);
  return false;
}

// One byte, the code, and then the message, until the pipe is closed.
void BackgroundStart::Send(const Status& status) {
  std::string text(1, static_cast<char>(status.code()));
  text += status.message();
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t wrote = ::write(report_.get(), text.data() + sent, text.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;  // the first process was killed, and nobody waits
    sent += static_cast<size_t>(wrote);
  }
  report_ = FileDescriptor();
}

Status BackgroundStart::Receive(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<size_t>(got));
  }
  if (text.empty()) return Status::IoError("the process in the background ended before it was ready");
  const auto code = static_cast<StatusCode>(text[0]);
  return code == StatusCode::kOk ? Status::Ok() : Status(code, text.substr(1));
}

void BackgroundStart::ReportReady() {
  ::setsid();
  log_->set_sinks({std::make_shared<spdlog::sinks::syslog_sink_mt>("isozone", LOG_PID, LOG_DAEMON, true)});
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere_.get(), stream);
  Send(Status::Ok());
}

void BackgroundStart::ReportFailure(const Status& status) { Send(status); }

}  // namespace isozone
