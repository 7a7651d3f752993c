#include "device/zonefs/open_zonefs.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "device/linux/block_device_node.h"
#include "device/linux/open_linux_device.h"
#include "device/zonefs/mounted_zone_files.h"
#include "device/zonefs/zonefs_kernel.h"

namespace isozone {
namespace {

// A part of the files that the process may have open: the program may have more to do.
size_t MostFiles() {
  constexpr size_t kFew = 64;
  constexpr size_t kMany = 4096;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFew;
  return std::clamp<size_t>(limit.rlim_cur / 4, kFew, kMany);
}

// Of two limits, of which 0 means none.
uint32_t Stricter(uint32_t a, uint64_t b) {
  if (a == 0 || b == 0) return static_cast<uint32_t>(std::max<uint64_t>(a, b));
  return static_cast<uint32_t>(std::min<uint64_t>(a, b));
}

Result<QueueFacts> FactsOf(const MountedZoneFiles& files) {
  ISOZONE_ASSIGN_OR_RETURN(QueueFacts facts, ParseQueueFacts(SysfsOf(files.number())));
  facts.size = files.count() * facts.zone_size;
  facts.max_open_zones = Stricter(facts.max_open_zones, files.Attribute("max_wro_seq_files"));
  facts.max_active_zones = Stricter(facts.max_active_zones, files.Attribute("max_active_seq_files"));
  return facts;
}

// To write takes io_uring. If the caller waits for a write, as threads do, zonefs in Linux before 6.6 writes by zone
// append, and that of 6.1 then takes every such write for one that went to a wrong place ("Corrupted write pointer",
// EIO).
Result<std::unique_ptr<Transfers>> MakeTransfers(const std::string& path, OpenMode mode, TransferPath wanted) {
  auto transfers = Transfers::Make(wanted, /*registered=*/-1);
  if (!transfers.ok()) return transfers.status().WithContext(path);
  if (mode == OpenMode::kReadOnly || (*transfers)->asynchronous()) return transfers;
  return Status::NotSupported(fmt::format(
      "{}: zonefs is written through io_uring, and not by {}; allow io_uring, or use the block device, dev:", path,
      (*transfers)->name()));
}

void WarnOfErrors(const std::string& name, const std::string& options) {
  std::string consequence;
  if (options.find("errors=remount-ro") != std::string::npos) consequence = "makes all of it read-only";
  if (options.find("errors=zone-ro") != std::string::npos) consequence = "makes its zone read-only";
  if (options.find("errors=zone-offline") != std::string::npos)
    consequence = "takes its zone, and the data in it, away";
  if (consequence.empty()) return;
  Log().warn("{} is mounted with {}: the first write that fails {}; mount it with errors=repair", name, options,
             consequence);
}

}  // namespace

Result<std::unique_ptr<LinuxDevice>> OpenZonefs(Uri& uri, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(const TransferPath path, TakeTransferPath(uri.options));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<MountedZoneFiles> files, MountedZoneFiles::Open(uri.path, mode));
  const std::string name = "zonefs:" + uri.path;
  const auto facts = FactsOf(*files);
  if (!facts.ok()) return facts.status().WithContext(uri.path);
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<Transfers> transfers, MakeTransfers(uri.path, mode, path));
  if (mode == OpenMode::kReadWrite) WarnOfErrors(name, files->MountOptions());
  const ZonefsKernel::Limits limits{facts->zone_size, facts->max_open_zones, facts->max_active_zones, MostFiles()};
  auto kernel = std::make_unique<ZonefsKernel>(std::move(files), std::move(transfers), limits);
  return LinuxDevice::Create(name, mode, std::move(kernel), *facts);
}

Status CheckZonefs(Uri& uri) {
  ISOZONE_RETURN_IF_ERROR(TakeTransferPath(uri.options).status());
  return MountedZoneFiles::Open(uri.path, OpenMode::kReadOnly).status();
}

}  // namespace isozone
