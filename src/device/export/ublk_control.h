// UblkControl: sends commands to /dev/ublk-control. Tests replace it by one of their own.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "device/export/ublk_abi.h"

namespace isozone {

class UblkControl {
 public:
  // Opens ublk's control device. kPermissionDenied: this process may not. kNotSupported: the module ublk_drv is
  // missing, or the kernel is too old or has no zones.
  static Result<std::unique_ptr<UblkControl>> Open();
  virtual ~UblkControl() = default;

  // Sends `command`, one of the constants of ublk_abi.h, for a device, and waits for the outcome. Returns 0 or a value
  // of errno. `argument`, of `length` bytes, is what the command takes or fills.
  int Send(uint32_t command, uint32_t device, void* argument = nullptr, uint16_t length = 0, uint64_t data = 0) {
    return DoSend(command, device, argument, length, data);
  }

 private:
  virtual int DoSend(uint32_t command, uint32_t device, void* argument, uint16_t length, uint64_t data) = 0;
};

}  // namespace isozone
