// ExportedDevice: a zoned device as a block device of the kernel, /dev/ublkbN, for as long as the object exists.
//
//   device --> ExportServer, WriteLedger (in /run) --> UblkKernel --> /dev/ublkbN
//
// A process that serves a block device must not wait for memory that the kernel would get only by writing to that
// device. So it asks for PinMemory before it opens anything.
//
// Thread safety: none; one thread uses the object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

class UblkKernel;
class ExportServer;
class LedgerFile;
class WriteLedger;

// Keeps what the process has loaded so far in memory, and tells the kernel that it serves I/O. kPermissionDenied if
// this process may not do that; everything works without it, as long as memory suffices.
Status PinMemory();

class ExportedDevice {
 public:
  struct Options {
    std::optional<uint32_t> id;  // the N of /dev/ublkbN; otherwise the first that is free
    bool recover = false;        // takes over the device `id`, whose server died
  };

  // Exports `device`, which must outlive the object. The block device can be used when this returns.
  static Result<std::unique_ptr<ExportedDevice>> Start(ZonedDevice& device, const Options& options);
  // Stops and removes the device, if that has not been done.
  ~ExportedDevice();
  ExportedDevice(const ExportedDevice&) = delete;
  ExportedDevice& operator=(const ExportedDevice&) = delete;

  // Removes the block device `id`, whose server died. What its users have not written is lost.
  static Status RemoveDead(uint32_t id);

  // Returns the path of the block device: "/dev/ublkb0".
  std::string path() const;
  // Returns whether a file system is mounted on the block device, or a program has it for itself (O_EXCL).
  bool InUse() const;
  // Ends what users have asked for, and takes the block device from them. Their further requests fail.
  Status Stop();

 private:
  ExportedDevice();
  Status Open(ZonedDevice& device, const Options& options);

  std::unique_ptr<UblkKernel> kernel_;
  std::unique_ptr<LedgerFile> file_;
  std::unique_ptr<WriteLedger> ledger_;
  std::unique_ptr<ExportServer> server_;
};

}  // namespace isozone
