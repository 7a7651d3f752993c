// Opening a device by the name a user gives it.
//
//   emu:/path/ssd.img                 the emulated SSD in an image file (device/emulated)
//   dev:nvme0n1, zonefs:/mnt/z        kernel backends; refused until they are built
//
// Options of the device are taken from `uri.options`; the caller rejects what is left after every layer took its own.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "base/uri.h"
#include "device/zoned_device.h"

namespace isozone {

enum class OpenMode : uint8_t {
  kReadWrite,  // the one writer: kBusy while another process has the device open so
  kReadOnly,   // beside a writer and other readers
};

// kNotFound where there is no image; kCorruption where it is truncated or not an image; kNotSupported for another
// version or an unknown scheme; kBusy; kPermissionDenied. Each in one line that says what to do.
Result<std::unique_ptr<ZonedDevice>> OpenDevice(Uri& uri, OpenMode mode);

// Makes the device that `uri` describes where that is something one can make (a new image file with the profile and
// geometry in the options; default profile small-zone), and does nothing to one that exists. kAlreadyExists is never
// returned; geometry options that contradict an existing image are kInvalidArgument. Nothing is made that `fits` refuses.
Status CreateDevice(Uri& uri, const std::function<Status(const DeviceGeometry&)>& fits = {});

}  // namespace isozone
