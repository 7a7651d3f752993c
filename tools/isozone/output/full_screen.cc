#include "isozone/output/full_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace isozone::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // another screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

std::atomic<bool> resized{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

// The first `columns` columns of `text`: code points are columns.
std::string_view Clip(std::string_view text, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (seen++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

bool FullScreen::Available() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

FullScreen::FullScreen(Console& console) : console_(console) {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped process would leave the terminal as it is
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  resized = false;
  struct sigaction action {};
  action.sa_handler = [](int) { resized = true; };
  ::sigaction(SIGWINCH, &action, &resize_before_);
  console_.Write(kEnter);
}

FullScreen::~FullScreen() {
  console_.Write(kLeave);
  // What cannot be written any more has been reported by Draw.
  const Status flushed = console_.Flush();
  static_cast<void>(flushed.ok());
  ::sigaction(SIGWINCH, &resize_before_, nullptr);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

FullScreen::Size FullScreen::CurrentSize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

Status FullScreen::Draw(std::span<const ViewLine> lines, const std::string& status) {
  const Size size = CurrentSize();
  std::string frame(kHome);
  const size_t shown = std::min(lines.size(), size.rows - 1);
  for (size_t i = 0; i < shown; ++i) {
    const std::string_view text = Clip(lines[i].text, size.columns);
    const size_t heading = std::min(lines[i].heading, text.size());
    if (heading > 0) frame += console_.Bold(text.substr(0, heading));
    frame += text.substr(heading);
    frame += kClearLine;
    frame += "\r\n";
  }
  frame += kClearBelow;
  frame += fmt::format("\x1b[{};1H", size.rows);
  frame += console_.Paint(Color::kGrey, Clip(status, size.columns));
  frame += kClearLine;
  console_.Write(frame);
  return console_.Flush();
}

FullScreen::Input FullScreen::Wait(int timeout_ms, char& key) {
  if (StopSignals::Raised()) return Input::kQuit;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&input, 1, timeout_ms);
  if (StopSignals::Raised()) return Input::kQuit;
  if (resized.exchange(false)) return Input::kResized;
  if (ready <= 0) return Input::kNothing;
  const ssize_t got = ::read(STDIN_FILENO, &key, 1);
  if (got == 1) return Input::kKey;
  return got < 0 && errno == EINTR ? Input::kNothing : Input::kQuit;
}

}  // namespace isozone::cli
