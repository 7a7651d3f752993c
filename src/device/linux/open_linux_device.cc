#include "device/linux/open_linux_device.h"

#include <fcntl.h>

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "device/linux/block_device_node.h"
#include "device/linux/nvme_namespace.h"
#include "device/linux/opened_block_device.h"
#include "device/linux/refusals.h"

namespace isozone {
namespace {

Result<QueueFacts> FactsOf(const BlockDeviceNode& device) {
  auto facts = ParseQueueFacts(SysfsOf(device.number));
  if (!facts.ok()) return facts.status().WithContext(device.path);
  if (!facts->zoned()) return NoZones(device.path);
  return facts;
}

// What a path means.
struct NamedDevice {
  BlockDeviceNode block;    // that of the namespace, if the path takes commands
  bool is_passing = false;  // transfers are commands to the path
};

Result<NamedDevice> Named(const std::string& path) {
  NamedDevice named;
  named.is_passing = TakesNvmeCommands(path);
  ISOZONE_ASSIGN_OR_RETURN(named.block, named.is_passing ? BlockDeviceBeside(path) : FindBlockDevice(path));
  return named;
}

// Of a device that takes commands at `path`, and has its block device open.
Result<std::unique_ptr<BlockKernel>> PassingKernelOf(FileDescriptor fd, TransferPath transfers, const std::string& path,
                                                     const QueueFacts& facts, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedNamespace passing, OpenNamespace(path, fd, facts, mode));
  return OpenedBlockDevice::CreatePassing(std::move(fd), transfers, std::move(passing), facts);
}

}  // namespace

Result<TransferPath> TakeTransferPath(UriOptions& options) {
  const std::optional<std::string> given = options.Take("io");
  if (!given) return TransferPath::kBest;
  if (*given == "ring") return TransferPath::kRing;
  if (*given == "threads") return TransferPath::kThreads;
  return Status::InvalidArgument(fmt::format("option io={}: write ring or threads", *given));
}

Result<std::unique_ptr<LinuxDevice>> OpenLinuxDevice(Uri& uri, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(const TransferPath path, TakeTransferPath(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(const NamedDevice named, Named(uri.path));
  ISOZONE_RETURN_IF_ERROR(FactsOf(named.block).status());  // what has no zones is not even opened
  ISOZONE_ASSIGN_OR_RETURN(FileDescriptor fd, OpenBlockDevice(named.block, mode, O_DIRECT));
  ISOZONE_ASSIGN_OR_RETURN(const BlockDeviceNode device, NodeOf(named.block, fd));
  ISOZONE_ASSIGN_OR_RETURN(const QueueFacts facts, FactsOf(device));
  auto kernel = named.is_passing ? PassingKernelOf(std::move(fd), path, uri.path, facts, mode)
                                 : OpenedBlockDevice::Create(std::move(fd), path);
  if (!kernel.ok()) return kernel.status().WithContext(uri.path);
  return LinuxDevice::Create("dev:" + uri.path, mode, std::move(*kernel), facts);
}

Status CheckLinuxDevice(Uri& uri) {
  ISOZONE_RETURN_IF_ERROR(TakeTransferPath(uri.options).status());
  ISOZONE_ASSIGN_OR_RETURN(const NamedDevice named, Named(uri.path));
  return FactsOf(named.block).status();
}

}  // namespace isozone
