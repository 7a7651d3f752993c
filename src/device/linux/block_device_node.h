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

// A block device, by its number.
struct BlockDeviceNode {
  std::string path;
  dev_t number = 0;
  std::string group;  // whose members may read and write it; empty if nobody's may
};

// kNotFound if `path` names nothing, kNotSupported if it is no block device.
Result<BlockDeviceNode> FindBlockDevice(const std::string& path);
// Opens it, with `flags` such as O_DIRECT; a writer has it for itself (O_EXCL). Waits a moment for processes that have
// it open in passing. An error says in one line what to do (OpenRefused).
Result<FileDescriptor> OpenBlockDevice(const BlockDeviceNode& device, OpenMode mode, int flags);
// The device that `fd` has open. Between two uses of a path it may come to name another one.
Result<BlockDeviceNode> NodeOf(const BlockDeviceNode& named, const FileDescriptor& fd);
// Bytes of the whole device.
Result<uint64_t> SizeOfBlockDevice(const std::string& path);
// Whether the file system has a block device of this name.
bool IsBlockDevice(const std::string& path);

// The folder of a block device in sysfs, and its attributes.
std::string SysfsFolder(dev_t number);
SysfsReader SysfsOf(dev_t number);
// An attribute of the queue of a block device, which for a partition is that of its disk.
std::optional<std::string> QueueAttribute(dev_t number, std::string_view name);
// The processes that have a file open for which `is_meant` holds, of those that this process may look at.
std::vector<uint64_t> ProcessesWith(const std::function<bool(const struct stat&)>& is_meant);

// The content of a small file of /proc or sysfs; empty if there is none.
std::optional<std::string> ReadText(const std::string& path);

}  // namespace isozone
