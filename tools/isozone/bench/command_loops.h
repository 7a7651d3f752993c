// Closed loops of device commands, all run from the calling thread. Each loop has one command in flight, and submits
// its next one when that has completed. A latency is the time from Submit to the device's call of `done`, without the
// time that the calling thread takes to wake up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/zoned_device.h"

namespace isozone::cli {

struct CommandLoop {
  // Fills in op, offset, data and length of the next command. Returns false when there is none.
  std::function<bool(DeviceRequest& request)> next;
  // The loop ends with the last loop that is not in the background.
  bool background = false;

  std::vector<int64_t> latencies_ns = {};  // out: one for each read and write
  uint64_t bytes = 0;                      // out: read and written
};

// Runs until every loop that is not in the background has no next command, or until a command fails.
Status RunLoops(ZonedDevice& device, std::span<CommandLoop> loops);

// Returns the value that `percent` (0..100) of `values` do not exceed; 0 if `values` is empty.
int64_t PercentileOf(std::vector<int64_t> values, double percent);

}  // namespace isozone::cli
