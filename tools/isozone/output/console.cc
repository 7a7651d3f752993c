#include "isozone/output/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/byte_text.h"

namespace isozone::cli {
namespace {

bool WantsColor() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

Console::Console(ColorMode mode) : color_(mode == ColorMode::kAlways || (mode == ColorMode::kAuto && WantsColor())) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width_ = size.ws_col;
}

std::string Console::Paint(Color color, std::string_view text) const {
  if (!color_) return std::string(text);
  return fmt::format("\x1b[38;5;{}m{}\x1b[0m", static_cast<int>(color), text);
}

std::string Console::Bold(std::string_view text) const {
  return color_ ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

void Console::Write(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

void Console::PrintJson(const Json& document) {
  Write(JsonText(document, 2));
  Write("\n");
}

Status Console::Flush() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::Ok();
  return Status::FromErrno(errno, "cannot write to standard output");
}

std::string Printable(std::string_view name) { return TextOfBytes(name, ControlCharacters::kEscaped); }

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Status WriteLocalFile(const std::string& path, std::string_view content) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "we"), [](std::FILE* opened) { return opened == nullptr ? 0 : std::fclose(opened); });
  if (file == nullptr) return Status::FromErrno(errno, "cannot write " + path);
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size() || std::fflush(file.get()) != 0) {
    return Status::FromErrno(errno, "cannot write " + path);
  }
  return Status::Ok();
}

}  // namespace isozone::cli
