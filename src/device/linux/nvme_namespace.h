// An NVMe namespace by the character device that takes commands for it, such as /dev/ng0n1, and its block device, here
// /dev/nvme0n1. The block device says who uses the namespace, what it can do and where its zones are; the character
// device only takes commands, and knows no exclusive use.
//
// Thread safety: any thread may call any function.
#pragma once

#include <linux/nvme_ioctl.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/linux/block_device_node.h"
#include "device/linux/queue_facts.h"
#include "device/open_device.h"

namespace isozone {

// Returns whether `path` names the character device of an NVMe namespace.
bool TakesNvmeCommands(const std::string& path);
// Returns the block device beside such a character device. kNotSupported if there is none, as for a namespace of a
// command set that the kernel does not know.
Result<BlockDeviceNode> BlockDeviceBeside(const std::string& path);

// A namespace that is open for commands.
struct OpenedNamespace {
  FileDescriptor commands;  // the character device
  uint32_t id = 0;
};

// Opens the character device `path` of the namespace whose block device `block` has open, and which has these facts.
// kPermissionDenied if this process may not; kIoError if the namespace does not identify itself; kNotSupported if the
// two that are open are not the same namespace, whatever their names are, or if its blocks carry metadata, which only
// the block device knows to handle. A message does not name the path.
Result<OpenedNamespace> OpenNamespace(const std::string& path, const FileDescriptor& block, const QueueFacts& facts,
                                      OpenMode mode);

// Checks what Identify Namespace has answered (NVM Command Set, CNS 00h). kNotSupported if the blocks of the namespace
// are not those of the block device.
Status CheckIdentity(std::span<const std::byte, 4096> identity, const QueueFacts& facts);

}  // namespace isozone
