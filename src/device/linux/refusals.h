// Why a block device is not opened, in one line that says what to do. Each function makes the status of the case that
// its comment names. Pure: what is known of the device is handed in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/open_device.h"

namespace isozone {

// The facts about a path that could not be opened.
struct DeviceUse {
  std::string path;
  std::string mounted_at;            // where a file system on it is mounted, or "swap"; empty if it is not
  std::vector<std::string> holders;  // block devices that are made of it, such as dm-0
  std::vector<uint64_t> processes;   // that have it open, as far as known
  std::string group;                 // whose members may open it; empty if nobody's may
};

// `path` names nothing: kNotFound.
Status NoSuchDevice(std::string_view path);
// The kernel does not let this process send NVMe commands, for `error`: kPermissionDenied.
Status CommandsForbidden(int error);
// The namespace does not identify itself; `answer` is -errno of the kernel, or a status of NVMe. kPermissionDenied only
// if the kernel does not let this process ask.
Status IdentifyFailed(int answer);
// `path` is a file or a directory: kNotSupported.
Status NotABlockDevice(std::string_view path);
// The device has no zones: kNotSupported.
Status NoZones(std::string_view path);
// The device has zones, and an image of an emulated SSD is to be put on it: kNotSupported.
Status HasZones(std::string_view path);
// open() failed with `error`: kBusy, kPermissionDenied, kNotFound, kReadOnly or kIoError.
Status OpenRefused(const DeviceUse& use, OpenMode mode, int error);

// Returns the directory at which /proc/self/mountinfo has the device mounted, by its number or by its path; "swap" if
// /proc/swaps has it; empty if neither has.
std::string MountedAt(std::string_view mountinfo, std::string_view swaps, std::string_view path, uint32_t major,
                      uint32_t minor);

}  // namespace isozone
