// A block device as a node in the file system: what the host tells of it and of those who use it, and how it is opened.
//
// Thread safety: any thread may call any function.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/linux/queue_facts.h"
#include "device/open_device.h"

namespace isozone {

// A block device: a path that names it, and its number.
struct BlockDeviceNode {
  std::string path;
  dev_t number = 0;
  std::string group;  // whose members may read and write it; empty if nobody's may
};

// Finds the block device that `path` names. kNotFound if it names nothing, kNotSupported if it names something else.
Result<BlockDeviceNode> FindBlockDevice(const std::string& path);
// Opens `device` with `flags` such as O_DIRECT. A writer has it for itself (O_EXCL). Waits a moment for processes that
// have it open in passing. An error says in one line what to do (OpenRefused).
Result<FileDescriptor> OpenBlockDevice(const BlockDeviceNode& device, OpenMode mode, int flags);
// Returns the device that `fd` has open. `named` may name another one by now, because a path may come to name another
// device between two uses.
Result<BlockDeviceNode> NodeOf(const BlockDeviceNode& named, const FileDescriptor& fd);
// Returns the bytes of the whole device.
Result<uint64_t> SizeOfBlockDevice(const std::string& path);
// Returns whether `path` names a block device.
bool IsBlockDevice(const std::string& path);

// Returns the folder of a block device in sysfs, and a reader of the attributes in it.
std::string SysfsFolder(dev_t number);
SysfsReader SysfsOf(dev_t number);
// Reads an attribute of the queue of a block device. A partition has that of its disk.
std::optional<std::string> QueueAttribute(dev_t number, std::string_view name);
// Returns the processes that have a file open for which `is_meant` holds. It sees only those that this process may look
// at.
std::vector<uint64_t> ProcessesWith(const std::function<bool(const struct stat&)>& is_meant);

// Returns the content of a small file of /proc or sysfs; empty if there is none.
std::optional<std::string> ReadText(const std::string& path);

}  // namespace isozone
