#include "fuse/thread_name.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "base/file_descriptor.h"

namespace isozone {

std::string ThreadName(pid_t thread) {
  if (thread <= 0) return {};
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/comm", thread);
  const FileDescriptor file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return {};
  std::array<char, 64> text{};
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  std::string name(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
  while (name.ends_with('\n')) name.pop_back();
  return name;
}

ThreadJob JobOf(std::string_view thread_name) {
  if (thread_name.starts_with("rocksdb:high")) return ThreadJob::kFlush;
  if (thread_name.starts_with("rocksdb:low") || thread_name.starts_with("rocksdb:bot")) return ThreadJob::kCompaction;
  return ThreadJob::kUnknown;
}

}  // namespace isozone
