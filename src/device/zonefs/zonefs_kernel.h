// ZonefsKernel: a zoned block device by way of zonefs, a file system of the kernel that shows each sequential zone as a
// file. It needs no rights but those to the files (Documentation/filesystems/zonefs.rst of Linux).
//
//   zone           the file seq/N, which is the zone that begins at N times the size of a zone
//   write pointer  its size. A write must begin there, and be direct.
//   reset, finish  truncates it to 0, or to the most it can hold.
//   open, close    opens it for writing, and closes it. If zonefs is mounted with explicit-open, this opens and closes
//                  the zone on the device as well, and no more files are open for writing than the device may have
//                  zones open.
//   flush          fsync of any file, which flushes the device. That of a zone that died is refused, and another is
//                  tried.
//   dead zones     An offline zone has the size 0 and no permissions, a read-only one no permission to write. The
//                  kernel notices the death of a zone at the next request that fails.
//
// A file is opened when it is first used. While the process or the system may have no further file open (EMFILE,
// ENFILE), and none of these can be closed, a transfer waits; the log says so, and what to do. A write that waits in
// vain counts as refused for want of an open zone, and neither it nor its zone is at fault. The file of a flush is
// opened before anything is written, so that a flush need not wait. A file for writing is closed when its zone is full,
// reset or finished, when a write of it fails, or, as zones in a device are, when another one needs its place. No more
// files are open for writing than the device may have zones open, however zonefs is mounted. What opens or closes a
// zone may block, and runs on task threads.
//
// Whether zones may be active is left to the device, as on block devices. But zonefs knows no command that opens a
// zone, so for that one the active zones are counted.
//
// Thread safety: that of BlockKernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "device/linux/block_kernel.h"
#include "device/linux/task_threads.h"
#include "device/linux/transfers.h"
#include "device/zonefs/open_files.h"
#include "device/zonefs/zone_files.h"

namespace isozone {

class ZonefsKernel final : public BlockKernel {
 public:
  struct Limits {
    uint64_t zone_size = 0;         // bytes
    uint32_t max_open_zones = 0;    // 0: no limit
    uint32_t max_active_zones = 0;  // 0: no limit
    size_t max_files = 64;          // open at a time for reading, and also for writing if open zones have no limit
    uint32_t max_waits = 5000;      // milliseconds that a transfer waits until a file can be opened
  };

  ZonefsKernel(std::unique_ptr<ZoneFiles> files, std::unique_ptr<Transfers> transfers, const Limits& limits);

  void Start(KernelTransfer& transfer) override;
  int ReportZones(uint64_t position, std::span<KernelZone> out) const override;
  int Manage(ZoneCommand command, uint64_t position, uint64_t length) override;
  std::string path() const override { return ""; }
  bool may_err_about_pointers() const override { return false; }
  std::string transfer_path() const override;

 private:
  // A transfer at the kernel that does what another one asked for.
  struct Job {
    ZonefsKernel* kernel = nullptr;
    KernelTransfer* asked = nullptr;
    uint32_t zone = 0;
    OpenFiles::File file;
    KernelTransfer transfer;
  };

  // Finds the file of a zone, or opens it. Blocks if it `writes`. Returns EMFILE or ENFILE if no file can be had now,
  // and ETOOMANYREFS if no further zone can be open.
  int OpenZone(uint32_t zone, bool writes, OpenFiles::File& file);
  // Finds or opens the file by which to flush, and keeps it: that of `zone`, or of the next one that can be opened.
  int OpenForFlush(uint32_t& zone, OpenFiles::File& file);
  // Finds or opens the file by which to write to a zone, after the one by which that is flushed.
  int OpenForWrite(uint32_t zone, OpenFiles::File& file);
  // Sends a transfer by the file of a zone that `open` finds or opens: at once, or, if it must wait for a file, on a
  // task thread.
  using Open = std::function<int(uint32_t& zone, OpenFiles::File& file)>;
  void OpenAndSend(KernelTransfer& asked, uint32_t zone, const Open& open);
  void WaitAndSend(KernelTransfer& asked, uint32_t zone, const Open& open);
  void StartFlush(KernelTransfer& asked, uint32_t zone);
  void Send(KernelTransfer& asked, uint32_t zone, OpenFiles::File file);
  void OnTransferred(std::unique_ptr<Job> job);
  // Closes what a write leaves behind, on a task thread.
  void EndWrite(Job& job);
  void NoticeReadOnly();
  void NoticeNoFiles(int error);
  static void Complete(KernelTransfer& asked, int64_t result);

  int Manage(ZoneCommand command, uint32_t zone);
  int KeepOpen(uint32_t zone);
  KernelZone Describe(uint32_t zone, const ZoneFileStatus& status) const;
  uint32_t ZoneAt(uint64_t position) const { return static_cast<uint32_t>(position / limits_.zone_size); }

  const Limits limits_;
  const std::unique_ptr<ZoneFiles> files_;
  const std::unique_ptr<Transfers> transfers_;
  const std::vector<uint64_t> capacities_;  // by zone
  OpenFiles readers_;
  OpenFiles writers_;
  std::atomic<bool> said_read_only_{false};
  std::atomic<bool> said_no_files_{false};
  TaskThreads tasks_{"isozone-zonefs", 4};  // last: it ends before what its tasks use
};

}  // namespace isozone
