#include "fuse/fuse_messages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/file_descriptor.h"

namespace isozone {
namespace {

std::string ReadAll(int file) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::pread(file, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

void WriteToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

// Makes standard error what the open file `file` is. While another thread opens a file, that can fail for a moment, and
// for no other reason.
void MakeStandardError(int file) {
  while (::dup2(file, STDERR_FILENO) < 0 && (errno == EINTR || errno == EBUSY)) {
  }
}

}  // namespace

Result<std::string> CollectFuseMessages(const std::function<void()>& call) {
  const FileDescriptor memory(::memfd_create("isozone-messages", MFD_CLOEXEC));
  if (memory.get() < 0) return Status::FromErrno(errno, "cannot collect what libfuse says");
  const FileDescriptor before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (before.get() < 0 && errno != EBADF) return Status::FromErrno(errno, "cannot collect what libfuse says");
  const bool is_read = before.get() >= 0;
  if (is_read) MakeStandardError(memory.get());
  call();
  if (!is_read) return std::string();
  MakeStandardError(before.get());
  std::string messages;
  const std::string text = ReadAll(memory.get());
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = rest.find('\n');
    const std::string_view line = rest.substr(0, length);
    if (line.starts_with("fuse")) {
      if (!messages.empty()) messages += "; ";
      messages += line;
    } else {
      WriteToStandardError(std::string(line) + "\n");
    }
    rest = length == std::string_view::npos ? std::string_view() : rest.substr(length + 1);
  }
  return messages;
}

}  // namespace isozone
