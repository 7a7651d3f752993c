// The directory that a file system is mounted on: whether it can be, and how a mount comes off it.
//
// A dead mount is one whose daemon has ended without unmounting: every access to it fails with ENOTCONN. It holds
// nothing, since all that the daemon had is on the device or lost with the daemon.
//
// Thread safety: pure functions of the machine; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace isozone {

// The kernel and /proc/self/mountinfo call a mount of ours by these.
inline constexpr std::string_view kFuseSubtype = "isozone";
inline constexpr std::string_view kFuseType = "fuse.isozone";

// One line of /proc/self/mountinfo.
struct MountEntry {
  std::string directory;
  std::string type;    // "fuse.isozone"
  std::string source;  // the URI of the device, if it is ours
  std::string number;  // of the mounted file system: "0:41"; no two that are mounted have the same
};

// Returns what stat(2) calls the device of its files; 0 if it has no number.
dev_t DeviceNumber(const MountEntry& entry);

// Returns what is mounted on `directory`, an absolute path, on top of all else. kNotFound if nothing is. An automount
// that waits for its file system counts as nothing. `text` is /proc/self/mountinfo.
Result<MountEntry> FindMount(std::string_view text, std::string_view directory);
// Reads /proc/self/mountinfo and looks there.
Result<MountEntry> FindMount(std::string_view directory);
// Returns whether two URIs name one device, whatever their options. Relative paths begin at the working directory, and
// symbolic links are followed.
bool IsSameDevice(std::string_view first, std::string_view second);
// Returns whether a directory shows the device of this URI.
bool IsShown(std::string_view source);

// Takes the mount off `directory`, even if files are open there: their programs go on with what they have until the
// daemon ends. Asks fusermount3 if this process may not do that.
Status DetachMount(const std::string& directory);

// Returns the absolute path of `directory`, in which a file system can be mounted: it is there, a directory, empty, and
// nothing is mounted on it. A dead mount of ours is taken off first, which is logged. kNotFound, kNotDirectory,
// kNotEmpty; kBusy if something is mounted there, and the message says what.
Result<std::string> PrepareDirectory(const std::string& directory);

}  // namespace isozone
