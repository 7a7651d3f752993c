// LinuxDevice: a zoned block device of the kernel, an NVMe ZNS namespace or an SMR disk for example, behind the seam.
//
//   request --CheckRequest--> ZoneBook --> BlockKernel::Start --completion thread--> ZoneBook --> done
//                                                         \--an error, a zone command--> a task thread --> done
//
//   reads    What lies behind the write pointer is filled with zeros, and only the rest is read, so it does not matter
//            what a device does with such reads. The thread that submits fills, or a task thread that had to ask for
//            the zone's report first. The completion thread never copies.
//   writes   go where ZoneBook has the write pointer, one at a time in a zone. One with Force Unit Access is sent with
//            RWF_DSYNC if the device has that. If it has a cache only, a flush follows. If it has no cache, nothing
//            need be done, and a flush neither. In the last two cases a write makes all before it durable, which is
//            DeviceGeometry::fua_covers_zone.
//   appends  are writes, in the order in which they were submitted, as long as the zone reports: no system call
//            appends.
//   zones    Reset, finish, open and close are system calls that block, on task threads that hold no lock. Resets that
//            wait and lie next to each other are one call. Before an open or close the zone's report tells whether its
//            state allows that, because not every driver refuses.
//   errors   After a failed request a task thread asks for the zone's report, which says where the write pointer is and
//            what the error meant (kernel_errors.h). Until then the zone counts as writing. If there is no report, the
//            next request that needs one asks again, and a reset needs none.
//            A read or flush that the host interrupted (EAGAIN, EINTR, ECANCELED) is sent again, a few times.
//            Linux from 6.10 on has write pointers of its own, which do not see the NVMe commands of programs, and
//            refuses a write that begins elsewhere with EIO. On 7.3, where this was tried, the next report puts its
//            pointer right once it has refused a write that blocks. So a write that failed with EIO is sent again on
//            such kernels, twice at most, as one that blocks, if its zone still waits for just these bytes. A thread
//            of its own does that, one write after the other, so that no other task waits for the device.
//   gone     Once the kernel says that the device is not there (ENODEV), every request completes with Internal Error.
//            The process lives on; the log has the reason.
//
// A reader (OpenMode::kReadOnly) does not know what another process writes. It asks for the report of a zone when a
// read goes beyond what it knows to be written.
//
// Counters begin when the device is opened, because the kernel does not tell what a device has done before. What the
// medium programs is not known either, and is given as what the host writes.
//
// Thread safety: that of ZonedDevice.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "device/linux/block_kernel.h"
#include "device/linux/queue_facts.h"
#include "device/linux/task_threads.h"
#include "device/linux/zone_book.h"
#include "device/linux/zone_layout.h"
#include "device/open_device.h"
#include "device/zoned_device.h"

namespace isozone {

class LinuxDevice final : public ZonedDevice {
 public:
  // Makes the device that users call `name`. `kernel` has it open, for writing unless `mode` is kReadOnly. Reads the
  // report of all zones. kNotSupported if Isozone cannot use them, kIoError if the kernel does not report them.
  static Result<std::unique_ptr<LinuxDevice>> Create(std::string name, OpenMode mode,
                                                     std::unique_ptr<BlockKernel> kernel, const QueueFacts& facts);
  ~LinuxDevice() override;

  const DeviceGeometry& geometry() const override { return layout_.geometry(); }
  std::string name() const override { return name_; }
  bool read_only() const override { return mode_ == OpenMode::kReadOnly; }
  void Submit(DeviceRequest& request) override;
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override;
  DeviceCounters counters() const override;
  DeviceDescription description() const override;

  // Returns why every request fails; OK as long as the device is there.
  Status gone() const;

 private:
  // A request that is at the kernel.
  struct Command {
    LinuxDevice* device = nullptr;
    DeviceRequest* request = nullptr;
    KernelTransfer transfer;
    int resends = 0;
  };

  LinuxDevice(std::string name, OpenMode mode, std::unique_ptr<BlockKernel> kernel, QueueFacts facts,
              ZoneLayout layout);
  // Takes over the kernel's report of all zones of the device.
  void Learn(std::span<const KernelZone> zones);
  // Returns whether the request waits until the zones of left_active_ have been finished. It is started after that.
  bool WaitsForFinish(DeviceRequest& request);
  void FinishLeftActive();
  // Gives back the active resource of a zone that has all that the seam can write. Blocks.
  void Finish(ZoneId zone);

  // Starts a request that was checked.
  void Start(DeviceRequest& request);
  void StartRead(DeviceRequest& request);
  // Reads what lies in front of `readable`, counted from the start of the zone.
  void Read(DeviceRequest& request, uint64_t readable);
  void StartWrite(DeviceRequest& request);
  // Sends a write or append for which the zone was taken.
  void Write(DeviceRequest& request);
  void StartFlush(DeviceRequest& request);
  void StartZoneCommand(DeviceRequest& request);
  // `resends` is how often it was sent before. Blocks if that is not 0.
  void Send(DeviceRequest& request, KernelTransfer::Kind kind, uint64_t position, uint64_t length, int resends = 0);

  void OnTransferred(std::unique_ptr<Command> command);
  // Sends a read or flush again that the host did not carry out. Returns false if that makes no sense.
  bool Resend(std::unique_ptr<Command>& command);
  // Returns whether the kernel may have refused a write or append, which ended with `error`, for a wrong pointer of its
  // own.
  bool MayWriteAgain(const DeviceRequest& request, int error, int resends) const;
  void EndWrite(DeviceRequest& request);
  void CompleteWrite(DeviceRequest& request, DeviceStatus status);

  // These functions block, and run on a task thread.
  void Resolve(DeviceRequest& request, int error);
  // Sends a write or append again, on the thread of write_again_. Returns false if its zone does not wait for it.
  // `resends` is how often it was sent before.
  bool WriteAgain(DeviceRequest& request, int resends);
  void ResolveWrite(DeviceRequest& request, int error);
  void FinishLarge(DeviceRequest& request);
  void RunResets();
  void RunZoneCommand(DeviceRequest& request);
  // `version` is that of the zone before the kernel was asked for the command.
  void EndZoneCommand(DeviceRequest& request, int error, uint64_t version);
  // Takes over a report of a zone that is in doubt. Returns 0 or the error for which it stays so.
  int Settle(ZoneId id);
  // Asks the kernel for one zone. Returns 0 or an error, and notices if the device is gone.
  int Describe(ZoneId zone, ZoneDescriptor& descriptor);
  // Takes resets that lie next to each other from those that wait. Returns none if none is left.
  std::vector<DeviceRequest*> TakeResets();

  ZoneId ZoneOf(const DeviceRequest& request) const { return geometry().ZoneOf(request.offset); }
  void LatchGone(int error);
  static void Complete(DeviceRequest& request, DeviceStatus status);

  const std::string name_;
  const OpenMode mode_;
  const QueueFacts facts_;
  const ZoneLayout layout_;
  const std::unique_ptr<BlockKernel> kernel_;
  ZoneBook book_;

  // Zones that have all that the seam can write, and were found active: a crash came before their finish. They are
  // finished before the first change, and not when the device is opened, because it may carry what is not Isozone's.
  std::vector<ZoneId> left_active_;  // not changed once the device is created
  std::atomic<bool> finishes_first_{false};
  Mutex first_mu_;
  std::vector<DeviceRequest*> first_changes_ ISOZONE_GUARDED_BY(first_mu_);  // that wait for these finishes

  std::atomic<bool> is_gone_{false};
  mutable Mutex gone_mu_;
  Status gone_ ISOZONE_GUARDED_BY(gone_mu_);

  Mutex resets_mu_;
  std::vector<DeviceRequest*> resets_ ISOZONE_GUARDED_BY(resets_mu_);  // submitted, and taken by no thread yet

  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> resets_done_{0};
  std::atomic<uint64_t> finishes_done_{0};

  TaskThreads tasks_{"isozone-zones", 4};     // behind the others: it ends before what its tasks use
  std::unique_ptr<TaskThreads> write_again_;  // one thread; null where the kernel has no pointers of its own
};

}  // namespace isozone
