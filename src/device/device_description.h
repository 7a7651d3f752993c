// What a device says of itself beyond the seam's geometry: for people, reports and benchmarks. Nothing that is stored
// or scheduled depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace isozone {

// The description of an emulated device.
struct EmulationDescription {
  std::string profile_text;         // the profile that the device was made with (device/emulated/nand/profile.h)
  bool timing = false;              // whether it takes the time that the profile says; if not, it is as fast as memory
  double speed = 1;                 // as a multiple of the profile's speed
  Histogram::Snapshot lateness_ns;  // how late completions were; empty without timing
};

// The description of a device of the kernel.
struct KernelDeviceDescription {
  std::string path;            // opens this device once more, also where its name has come to name another one
  std::string model;           // as sysfs has it
  std::string scheduler;       // the I/O scheduler; empty if there is none
  std::string transfer_path;   // how transfers reach the kernel: "io_uring", ...
  std::string durable_writes;  // what makes a write durable (DurableWritesName)
  // Zones that Isozone leaves alone, since they are conventional or have less capacity; and zones that it uses in part.
  uint32_t conventional_zones = 0;
  uint32_t small_zones = 0;
  uint32_t large_zones = 0;
  std::vector<uint64_t> zone_positions;  // where each zone that Isozone uses begins on the device, in bytes; by ZoneId
};

// A device sets the parts that it has.
struct DeviceDescription {
  std::optional<EmulationDescription> emulation;
  std::optional<KernelDeviceDescription> kernel;
};

}  // namespace isozone
