// The handles that the kernel has open, files and directories, by the number that it gives back with each request.
//
// The kernel does not release what is open when the mount ends by a signal, so OpenHandles owns all of them.
//
// Thread safety: any thread, except that nothing uses a handle while it is closed, which the kernel sees to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "fuse/fuse_library.h"
#include "store/inode_files.h"
#include "store/io/io_class.h"
#include "store/positional_file.h"

namespace isozone {

struct OpenHandle {
  virtual ~OpenHandle() = default;
};

struct FileHandle : OpenHandle {
  static FileHandle& Of(const fuse_file_info& info);

  std::shared_ptr<PositionalFile> file;
  IoClass read_class = IoClass::kUserRead;
  bool can_write = false;
  // Whether the file is new, so that its program may have said how long it will live (new_file.h). False from the first
  // write on.
  std::atomic<bool> may_have_hint{false};
};

struct DirectoryHandle : OpenHandle {
  static DirectoryHandle& Of(const fuse_file_info& info);

  std::unique_ptr<DirectoryStream> stream;
};

class OpenHandles {
 public:
  // Takes over the handle, and returns its number.
  uint64_t Add(std::unique_ptr<OpenHandle> handle);
  void Close(uint64_t number);
  void CloseAll();

 private:
  Mutex mu_;
  std::unordered_map<uint64_t, std::unique_ptr<OpenHandle>> handles_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
