// UblkControl: the commands that go to /dev/ublk-control.
//
// Thread safety: none.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "export/ublk_abi.h"

namespace isozone {

class UblkControl {
 public:
  // kPermissionDenied; kNotSupported without the module ublk_drv, and if the kernel is too old or has no zones.
  static Result<std::unique_ptr<UblkControl>> Open();
  ~UblkControl();
  UblkControl(const UblkControl&) = delete;
  UblkControl& operator=(const UblkControl&) = delete;

  // Sends `command`, one of the constants of ublk_abi.h, for a device, and waits for the outcome: 0 or a value of errno.
  // `argument`, of `length` bytes, is what the command takes or fills.
  int Send(uint32_t command, uint32_t device, void* argument = nullptr, uint16_t length = 0, uint64_t data = 0);

 private:
  explicit UblkControl(FileDescriptor fd) : fd_(std::move(fd)) {}
  Status CheckFeatures();

  FileDescriptor fd_;
  io_uring ring_{};
};

}  // namespace isozone
