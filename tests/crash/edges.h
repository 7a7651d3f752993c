// The edges of space: small devices that are filled to the last block, changed while they are full, and emptied, under
// every placement policy and every scheme of collection, and their power cut in every command of that. Whatever a user
// did, and whatever a cut leaves, a device can be mounted, emptied, and filled again with about as much as at first.
//
// 1. A device of random shape (DeviceOf) is formatted, filled, changed, and emptied (filler.h), on a CrashDevice.
// 2. The power is cut in each command, or in some; it ends in one of the ways that it may (crash_device.h).
// 3. What that leaves is checked by fsck, mounted, read back whole and held against the oracle, changed, emptied,
//    unmounted, and checked by fsck again. Mounted once more it holds nothing, and is filled: with as many bytes as the
//    new device took, but for kToleratedZones. Then it is emptied again.
//
// All follows from the names of policy and scheme and from a seed.
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
  uint64_t seed = 0;  // of its shape, the mount options, what is done, and how cuts end

  // "isozone,lifetime,17", as Parse takes it.
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
  uint64_t bytes = 0;  // that new devices took
};

class Edges {
 public:
  // Cuts one of so many commands of each device, on average; 0: none.
  explicit Edges(uint64_t one_of) : one_of_(one_of) {}

  // kCorruption with the command that replays what is wrong. With `cut`, only that.
  Status Run(const EdgeDevice& device, const std::optional<Cut>& cut);

  const EdgeReport& report() const { return report_; }

 private:
  const uint64_t one_of_;
  EdgeReport report_;
};

}  // namespace isozone::crash
