// The options of `isozone mount -o LIST`, as mount(8), /etc/fstab and users give them: words and KEY=VALUE, separated
// by commas. They say how a directory shows the file system. How the file system itself is mounted is said by the URI
// of the device.
//
// Thread safety: values and pure functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace isozone {

struct FuseOptions {
  static constexpr uint32_t kMostThreads = 64;

  bool read_only = false;
  bool allow_other = false;  // users other than the one that mounts may use it; the modes of files decide what they may
  bool writeback = false;    // the kernel keeps unsynced writes and sends them later
  bool refuse_in_place = false;  // a write over bytes that are there fails with EOPNOTSUPP
  std::optional<uid_t> uid;      // all files are shown as owned by this user
  std::optional<gid_t> gid;      // all files are shown as of this group
  std::optional<mode_t> umask;   // permissions that all files are shown without; without this, those of each file
  uint32_t threads = 8;          // requests that are served at once, at least two
  bool io_uring = true;          // requests come by io_uring, where the kernel offers it
  std::vector<std::string> kernel = {"nosuid", "nodev"};  // what the kernel is told, in order: later ones win

  // Takes over the options in `list`. kInvalidArgument names the first that is unknown or has no such value. Options
  // that are for mount(8) alone, such as `nofail` and `x-systemd.requires=...`, are accepted and have no effect here.
  Status Add(std::string_view list);
};

// An option in words, as `isozone mount --help` and the test of docs/mount.md list it.
struct FuseOptionHelp {
  std::string_view example;  // "threads=N"
  std::string_view meaning;  // a few words, with the default
};
std::vector<FuseOptionHelp> ListFuseOptions();

}  // namespace isozone
