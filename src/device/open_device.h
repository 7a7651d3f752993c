// Opens and creates a device by the name that a user gives it.
//
//   emu:/path/ssd.img                 the emulated SSD in an image file (device/emulated)
//   emu:/dev/sdb                      the same on a block device without zones
//   dev:/dev/nvme0n2                  a zoned block device of Linux (device/linux)
//   dev:/dev/ng0n2                    an NVMe namespace by commands that the kernel passes through
//   zonefs:/mnt/z                     one on which zonefs is mounted (device/zonefs)
//
// A device takes its options from `uri.options`. The caller rejects the options that are left once every layer took its
// own.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "base/uri.h"
#include "device/zoned_device.h"

namespace isozone {

enum class OpenMode : uint8_t {
  kReadWrite,  // as the only writer: kBusy while another process has the device open for writing
  kReadOnly,   // beside a writer and other readers
};

// Opens the device. kNotFound if there is no image or device; kCorruption if it is truncated or not an image;
// kNotSupported for another version, an unknown scheme, or a device without zones; kBusy; kPermissionDenied. The
// message of each is one line that says what to do.
Result<std::unique_ptr<ZonedDevice>> OpenDevice(Uri& uri, OpenMode mode);

enum class UnusableImage : uint8_t {
  kKeep,     // the call fails
  kReplace,  // on a block device only: an image that is damaged, or of another version, is overwritten and lost
};

// Creates the device that `uri` describes, if its scheme allows that: a new image file with the profile and geometry in
// the options (the default profile is small-zone), which remembers `timing` and `sync`, or an image on a block device,
// which by default has as many zones as there is room for, and replaces what was there. Does nothing if the device
// exists, but returns kInvalidArgument if the geometry options contradict it. Never returns kAlreadyExists. If `fits`
// returns an error for the geometry, nothing is created. A block device itself cannot be created: kNotFound if there is
// none.
Status CreateDevice(Uri& uri, const std::function<Status(const DeviceGeometry&)>& fits = {},
                    UnusableImage unusable = UnusableImage::kKeep);

}  // namespace isozone
