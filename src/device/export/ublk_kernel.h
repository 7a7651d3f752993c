// UblkKernel: one device of the kernel's ublk driver, with this process as its server (ublk_abi.h).
//
//   Add       makes a new device: ADD_DEV, SET_PARAMS. Start does START_DEV.
//   Recover   takes over a device whose server died. Open does START_USER_RECOVERY, Start END_USER_RECOVERY.
//             The kernel keeps the requests of the device's users, and sends them to the new server.
//   Stop      STOP_DEV ends what users have asked for, then takes /dev/ublkbN away, then ends the fetches of the
//             server.
//   GiveUp    Stop; or, for a device that has users, the end of this process, so that the kernel waits for another one.
//   Remove    DEL_DEV, which is complete when nobody has the device open. So the queues and /dev/ublkcN are closed
//             first.
//
// Each queue has an io_uring of its own. A fetch is an io_uring command that ends when a request has arrived, and the
// command that commits its result is the next fetch for that tag. An eventfd, which is read in the same ring, wakes the
// thread for all other reasons.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/export/export_kernel.h"
#include "device/export/export_shape.h"
#include "device/export/ublk_control.h"

namespace isozone {

class UblkKernel final : public ExportKernel {
 public:
  // Makes device `id`, or the first that is free. kBusy if `id` is taken, kNotSupported if the kernel takes no such
  // device.
  static Result<std::unique_ptr<UblkKernel>> Add(std::unique_ptr<UblkControl> control, const ExportShape& shape,
                                                 std::optional<uint32_t> id);
  // Prepares to take over device `id`, whose server died, and changes nothing yet. Waits some seconds for the last
  // server to end. kNotFound if there is no such device, kBusy if it has a server, kInvalidArgument if it is another
  // device than `shape`.
  static Result<std::unique_ptr<UblkKernel>> Recover(std::unique_ptr<UblkControl> control, const ExportShape& shape,
                                                     uint32_t id);
  // Removes device `id`, whose server died. kNotFound if there is no such device, kBusy if it has a server. `forget`
  // drops what the server has left; it is called while the number is still taken, so that it cannot hit another
  // server's.
  static Status RemoveDead(UblkControl& control, uint32_t id, const std::function<void()>& forget);

  // Removes the device if it is new and was not started.
  ~UblkKernel() override;

  uint32_t id() const { return id_; }
  // Returns the path of the block device: "/dev/ublkb0".
  std::string path() const;
  // Becomes the server of the device. Must be called before the first queue is opened.
  Status Open();

  ExportLayout layout() const override { return layout_; }
  Result<std::unique_ptr<ExportQueue>> OpenQueue(uint16_t number) override;
  Status Start() override;
  Status Stop() override;
  Status GiveUp(const Status& why) override;
  // Removes the device, whose queues must be closed. If a user still has it open, waits a moment, and then logs that
  // its number stays taken until that user closes it. Before Linux 6.9 waits until nobody has it open.
  Status Remove();

 private:
  UblkKernel(std::unique_ptr<UblkControl> control, uint32_t id, const ublk::DeviceInfo& info);

  const std::unique_ptr<UblkControl> control_;
  const uint32_t id_;
  const ExportLayout layout_;
  FileDescriptor fd_;  // /dev/ublkcN
  bool recovers_ = false;
  bool removed_ = false;
};

}  // namespace isozone
