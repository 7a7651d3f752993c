// The application that runs beside a collector (LSM_ZGC paper, sections 4.4 and 4.5). It writes zones, then reads them
// at random.
#pragma once

#include <cstdint>
#include <vector>

#include "device/zoned_device.h"

namespace isozone::cli {

struct WorkerOptions {
  uint64_t bytes = 0;      // written in all; as many are read afterwards
  uint32_t threads = 1;    // each writes and reads its share, one command at a time
  uint64_t read_size = 0;  // bytes of a read; whole blocks
  uint64_t seed = 0;
};

struct WorkerResult {
  double seconds = 0;
  uint64_t bytes = 0;  // written and read
  double BytesPerSecond() const { return seconds == 0 ? 0 : static_cast<double>(bytes) / seconds; }
};

// How many zones the worker takes. Each thread has some of its own, one of which is active.
uint32_t WorkerZones(const DeviceGeometry& geometry, const WorkerOptions& options);

// `zones`: WorkerZones() empty zones. Waits for all threads, and then resets the zones.
Result<WorkerResult> RunWorker(ZonedDevice& device, const std::vector<ZoneId>& zones, const WorkerOptions& options);

}  // namespace isozone::cli
