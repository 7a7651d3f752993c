#include "fuse/hint_reader.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace isozone {
namespace {

struct HintQuestion {
  uint64_t number = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  std::array<char, PATH_MAX> path{};  // as much of it as is needed, with the zero at its end
};
constexpr size_t kQuestionHead = offsetof(HintQuestion, path);

struct HintAnswer {
  uint64_t number = 0;
  uint64_t hint = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// The process that opens files
// ---------------------------------------------------------------------------------------------------------------------

// The file of `question`, by O_PATH, which needs no request to its file system where the kernel knows the names; -1.
int Find(const HintQuestion& question) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const auto found = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, question.path.data(), &how, sizeof(how)));
  if (found < 0) return -1;
  struct statx shown {};
  // What the kernel knows of it, without asking.
  const bool same = ::statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &shown) == 0 &&
                    shown.stx_ino == question.inode && S_ISREG(shown.stx_mode) &&
                    makedev(shown.stx_dev_major, shown.stx_dev_minor) == question.device;
  if (same) return found;
  ::close(found);
  return -1;
}

uint64_t HintOf(const HintQuestion& question) {
  const int found = Find(question);
  if (found < 0) return HintReader::kNoHint;
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", found);
  const int file = ::open(path.data(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ::close(found);
  if (file < 0) return HintReader::kNoHint;
  uint64_t hint = 0;
  const int read = ::fcntl(file, F_GET_RW_HINT, &hint);
  ::close(file);
  return read == 0 ? hint : HintReader::kNoHint;
}

// Gives up all that it has of the daemon: files, its directory, and the signals that ask the daemon to end, which takes
// that time. This ends when the daemon has ended.
void LetGo(int socket) {
  ::dup2(socket, STDIN_FILENO);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  if (::close_range(STDERR_FILENO + 1, UINT_MAX, 0) != 0) ::_exit(1);
  (void)!::chdir("/");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "isozone-hints");
}

[[noreturn]] void AnswerQuestions(int socket) {
  LetGo(socket);
  HintQuestion question;
  for (;;) {
    const ssize_t got = ::recv(STDIN_FILENO, &question, sizeof(question), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= static_cast<ssize_t>(kQuestionHead)) ::_exit(0);  // the daemon has ended
    const HintAnswer answer{question.number, HintOf(question)};
    (void)::send(STDIN_FILENO, &answer, sizeof(answer), MSG_NOSIGNAL);
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// The daemon
// ---------------------------------------------------------------------------------------------------------------------

HintReader::HintReader(FileDescriptor socket, pid_t process) : socket_(std::move(socket)), process_(process) {}

Result<std::unique_ptr<HintReader>> HintReader::Start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Status::FromErrno(errno, "cannot make a pair of sockets");
  }
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  const pid_t process = ::fork();
  if (process < 0) return Status::FromErrno(errno, "cannot start a process");
  if (process == 0) AnswerQuestions(theirs.get());
  return std::unique_ptr<HintReader>(new HintReader(std::move(ours), process));
}

HintReader::~HintReader() {
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

uint64_t HintReader::Read(const File& file) {
  const int64_t deadline_ns = MonotonicNs() + kPatienceNs;
  if (!TakeTurn(deadline_ns)) return kNoHint;
  uint64_t hint = kNoHint;
  // Nothing is asked as long as the answer before is still to come.
  const bool may_ask = !ended_ && (answered_ == asked_ || Receive(0));
  if (may_ask && Send(file)) hint = Receive(deadline_ns).value_or(kNoHint);
  EndTurn();
  return hint;
}

bool HintReader::TakeTurn(int64_t deadline_ns) {
  const MutexLock lock(mu_);
  while (turn_taken_) {
    if (MonotonicNs() >= deadline_ns) return false;
    turn_ended_.WaitUntil(mu_, deadline_ns);
  }
  turn_taken_ = true;
  return true;
}

void HintReader::EndTurn() {
  {
    const MutexLock lock(mu_);
    turn_taken_ = false;
  }
  turn_ended_.Signal();
}

bool HintReader::Send(const File& file) {
  HintQuestion question;
  if (file.path.size() >= question.path.size()) return false;
  question.number = asked_ + 1;
  question.device = file.device;
  question.inode = file.inode;
  std::memcpy(question.path.data(), file.path.c_str(), file.path.size() + 1);
  const size_t size = kQuestionHead + file.path.size() + 1;
  if (::send(socket_.get(), &question, size, MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(size)) {
    if (errno == EPIPE || errno == ECONNRESET) NoteEnd();
    return false;
  }
  ++asked_;
  return true;
}

std::optional<uint64_t> HintReader::Receive(int64_t deadline_ns) {
  for (;;) {
    HintAnswer answer;
    const ssize_t got = ::recv(socket_.get(), &answer, sizeof(answer), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(answer))) {
      answered_ = answer.number;
      if (answered_ == asked_) return answer.hint;
      continue;
    }
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
      NoteEnd();
      return {};
    }
    const int64_t left_ns = deadline_ns - MonotonicNs();
    if (left_ns <= 0) return {};
    pollfd waited{socket_.get(), POLLIN, 0};
    const timespec time{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    ::ppoll(&waited, 1, &time, nullptr);
  }
}

void HintReader::NoteEnd() {
  ended_ = true;
  Log().warn(
      "the process that reads the hints of programs has ended: the lifetime of tables follows from threads alone");
}

}  // namespace isozone
