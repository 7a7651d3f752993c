#include "device/export/ledger_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace isozone {

std::string LedgerFile::PathOf(uint32_t id) { return fmt::format("/run/isozone-export-{}", id); }

Result<std::unique_ptr<LedgerFile>> LedgerFile::Open(const std::string& path, size_t size, bool keep) {
  const auto failed = [&] { return Status::FromErrno(errno, fmt::format("cannot open {}", path)); };
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return failed();
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return failed();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failed();
  const bool fits = static_cast<size_t>(status.st_size) == size;
  if (keep && !fits) {
    Log().warn("{} is not what the server that died has left: what it had written, and told nobody, may fail now",
               path);
  }
  if (!keep || !fits) {
    if (::ftruncate(fd.get(), 0) != 0) return failed();
    // Not sparse: a full /run is an error here, and not a signal later.
    if (const int error = AllocateStart(fd.get(), size); error != 0) {
      return Status::FromErrno(error, fmt::format("cannot make {}", path));
    }
  }
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return failed();
  return std::unique_ptr<LedgerFile>(new LedgerFile(path, std::move(fd), {static_cast<std::byte*>(memory), size}));
}

LedgerFile::LedgerFile(std::string path, FileDescriptor fd, std::span<std::byte> memory)
    : path_(std::move(path)), fd_(std::move(fd)), memory_(memory) {}

LedgerFile::~LedgerFile() { ::munmap(memory_.data(), memory_.size()); }

void LedgerFile::Remove() { ::unlink(path_.c_str()); }

}  // namespace isozone
