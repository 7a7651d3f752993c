// Tests at the edges of space. Small devices are filled to the last block, changed while they are full, and emptied,
// under every placement policy and every GC scheme, and their power is cut in every command. Whatever a user
// did, and whatever a cut leaves, a device can be mounted, emptied, and filled again with about as much data as at
// first.
//
// 1. A device of random shape (DeviceOf) is formatted, filled, changed, and emptied (filler.h), on a CrashDevice.
// 2. The power is cut in each command, or in some of them, in one of the possible ways (crash_device.h).
// 3. The result is checked by fsck, mounted, read back completely and compared with the oracle, changed, emptied,
//    unmounted, and checked by fsck again. When it is mounted once more it must be empty. Then it is filled with as
//    many bytes as the new device took, except for kToleratedZones, and emptied again.
//
// Everything follows from the names of policy and scheme, and from a seed.
//
// Thread safety: one run at a time in a process, which has no other threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "crash/crash.h"

namespace isozone::crash {

struct EdgeDevice {
  std::string policy;
  std::string scheme;
  uint64_t seed = 0;  // of its shape, the mount options, the operations, and the outcomes of cuts

  // "isozone,lifetime,17", in the form that Parse takes.
  std::string ToString() const;
  static Result<EdgeDevice> Parse(const std::string& text);
};
// One for each policy and each scheme, with seeds that follow from `seed`.
std::vector<EdgeDevice> EdgeDevices(uint64_t seed);
// 12 to 40 zones, 16 to 32 blocks each, either kind of Force Unit Access.
std::string DescribeEdgeDevice(const EdgeDevice& device);

struct EdgeReport {
  uint64_t devices = 0;
  uint64_t operations = 0;
  uint64_t commands = 0;
  uint64_t cuts = 0;
  uint64_t bytes = 0;  // bytes that new devices took
};

class Edges {
 public:
  // Cuts one command out of `one_of` on each device, on average; 0: none.
  explicit Edges(uint64_t one_of) : one_of_(one_of) {}

  // kCorruption with the command that replays the failure. With `cut`, makes only that cut.
  Status Run(const EdgeDevice& device, const std::optional<Cut>& cut);

  const EdgeReport& report() const { return report_; }

 private:
  const uint64_t one_of_;
  EdgeReport report_;
};

}  // namespace isozone::crash
