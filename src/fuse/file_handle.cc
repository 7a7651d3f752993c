#include "fuse/file_handle.h"

#include <utility>

namespace isozone {
namespace {

// The number is the address, so that finding a handle needs no lock.
OpenHandle* HandleOf(uint64_t number) {
  return reinterpret_cast<OpenHandle*>(number);  // NOLINT(performance-no-int-to-ptr): libfuse keeps it so
}

}  // namespace

FileHandle& FileHandle::Of(const fuse_file_info& info) { return static_cast<FileHandle&>(*HandleOf(info.fh)); }

DirectoryHandle& DirectoryHandle::Of(const fuse_file_info& info) {
  return static_cast<DirectoryHandle&>(*HandleOf(info.fh));
}

uint64_t OpenHandles::Add(std::unique_ptr<OpenHandle> handle) {
  const auto number = reinterpret_cast<uint64_t>(handle.get());
  const MutexLock lock(mu_);
  handles_.emplace(number, std::move(handle));
  return number;
}

// The last handle of a file writes out what is in memory, which takes long, so it ends without the lock.
void OpenHandles::Close(uint64_t number) {
  std::unique_ptr<OpenHandle> closed;
  const MutexLock lock(mu_);
  const auto found = handles_.find(number);
  if (found == handles_.end()) return;
  closed = std::move(found->second);
  handles_.erase(found);
}

void OpenHandles::CloseAll() {
  std::unordered_map<uint64_t, std::unique_ptr<OpenHandle>> closed;
  const MutexLock lock(mu_);
  closed.swap(handles_);
}

}  // namespace isozone
