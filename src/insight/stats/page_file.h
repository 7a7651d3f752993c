// The file of a statistics page: its name, its rights, and whether the process that publishes it still lives.
//
//   name     /dev/shm/isozone-DEVICE. A device is known by what it is and not by its path: `b259-3` for a block device,
//            `f801-2a41` for a file or folder, by the hexadecimal numbers of its file system and inode. So links and
//            relative paths lead to the same page, and so does the character device that takes the NVMe commands of
//            a block device.
//            If something of another user is in its place, a page that this user may not remove or anything else, a
//            point and the number of this user follow the name: `isozone-b259-3.1000`. Readers look at all of them, and
//            prefer one that lives.
//   folder   /dev/shm, because everybody may make a file there, on every Linux, without root and without a service that
//            prepares it; because it is memory, so that writing costs no I/O; and because root, and another user with
//            rights on the device, find a page there without knowing who mounted. (/run/isozone needs root, and
//            XDG_RUNTIME_DIR is another folder for each user.)
//   rights   Who may read the image or device may read its page. Nobody but the process that mounted writes it, and
//            nobody can open it for that, so that no other process of the same user shortens it by mistake: that would
//            end the process by a SIGBUS.
//   life     The process holds a lock of the file (flock) as long as it lives, and the page names the process by its
//            pid and the time of its start. A page is dead if its lock is free, or if its process is gone: the first
//            also holds where reader and writer see different pids, the second where a child has inherited the lock.
//            The next mount replaces a dead page, and a reader removes it.
//
// Thread safety: values and pure functions of the file system.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "insight/stats/page_layout.h"

namespace isozone {

inline constexpr const char* kPageDirectory = "/dev/shm";

// What a page is named after, and whose rights it has.
struct PageOwner {
  std::string page_name;  // "isozone-b259-3"
  mode_t mode = 0;        // of the image or device
  uid_t uid = 0;
  gid_t gid = 0;
  bool has_name = true;  // false: a file without a name, which nobody finds once the process has ended

  // `device`: a name as that of ZonedDevice::name, "emu:/path/ssd.img", or the path alone. kNotFound if it names
  // nothing in the file system.
  static Result<PageOwner> Of(const std::string& device);
};

// The names in `directory` that begin with `prefix`. None where there is no such directory, or none that may be read.
// Any other error says that there may be more.
Result<std::vector<std::string>> NamesWith(const std::string& directory, const std::string& prefix);

// The paths of all pages of a device, its own name first. Whether they are of any use is not known yet.
Result<std::vector<std::string>> PagePaths(const std::string& directory, const std::string& page_name);

// Whether the user who made `file`, one of the paths above, could have mounted the device: what another has put there
// is not believed.
bool MayHaveMounted(const struct stat& file, const PageOwner& owner);
// Bytes [offset, offset + bytes) of such a file; fewer where it ends before. It is read and not mapped, so that one
// that shrinks cannot end the reader (SIGBUS).
Result<std::vector<std::byte>> ReadSharedFile(int fd, size_t offset, size_t bytes);

// This process, as a page names it.
struct PageProcess {
  uint32_t pid = 0;
  uint64_t started = 0;  // clock ticks after the boot; 0: not known
  uint64_t pid_namespace = 0;
  std::string program;

  static PageProcess Self();
  // Whether a process of this pid and start exists; true if that cannot be known from here.
  bool MayLive() const;
};

// A page that is written: a mapped file, complete before it has its name.
class PageFile {
 public:
  // Makes a page of `bytes` bytes, all zeros, which has no name yet. kNoSpace if the memory is not there: it is
  // allocated now, so that no later write can fail. `directory` is kPageDirectory but in tests.
  static Result<std::unique_ptr<PageFile>> Make(const PageOwner& owner, size_t bytes,
                                                const std::string& directory = kPageDirectory);
  // Makes a page that only this process can see, and that never has a name. kNoSpace as Make.
  static Result<std::unique_ptr<PageFile>> MakePrivate(size_t bytes);
  // Removes the file, unless LeaveName was called.
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  std::span<uint64_t> words() const { return words_; }
  // The descriptor of the file, as long as this object lives.
  int fd() const { return fd_.get(); }
  // The name that it has, or will have.
  const std::string& path() const { return path_; }
  // Gives the page its name, in place of what a process that died has left; if something of another user stays there,
  // the name for this user. Does nothing for a private page. kPermissionDenied; kBusy if a live process publishes under
  // that name.
  Status Publish();
  // Takes the name away, if it still is this file's.
  void Remove();
  // The file outlives this object.
  void LeaveName() { leaves_name_ = true; }

 private:
  PageFile(std::string path, FileDescriptor fd, std::span<uint64_t> words);
  // Allocates and maps the first `bytes` bytes of `fd`.
  static Result<std::unique_ptr<PageFile>> Map(std::string path, FileDescriptor fd, size_t bytes);

  std::string path_;
  const FileDescriptor fd_;
  const std::span<uint64_t> words_;
  bool leaves_name_ = false;
};

}  // namespace isozone
