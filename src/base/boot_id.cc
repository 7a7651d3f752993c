#include "base/boot_id.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/file_descriptor.h"

namespace isozone {

Result<std::string> BootId() {
  const FileDescriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t got = fd.get() < 0 ? -1 : ::read(fd.get(), text.data(), text.size());
  if (got < 0) return Status::FromErrno(errno, "cannot read which boot of the machine this is");
  const std::string_view line(text.data(), static_cast<size_t>(got));
  std::string id(line.substr(0, line.find('\n')));
  if (id.empty()) return Status::NotFound("this machine does not tell which boot it is in");
  return id;
}

}  // namespace isozone
