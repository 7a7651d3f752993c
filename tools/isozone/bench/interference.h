// How much I/O to one zone slows I/O to another: the measurement behind Fig. 3 of the ZenFS+ paper. A pivot zone is
// read (or written) without pause at queue depth 1, together with each following zone in turn, also at queue depth 1.
// The result is the median latency of that second stream.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/emulated/nand/profile.h"
#include "isozone/bench/scratch_zones.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// The hardware that two zones share, according to the profile of the device.
enum class Sharing : uint8_t { kUnknown, kNothing, kChannel, kDie };
// Returns the kind in words: "apart", "same channel", ...
std::string_view SharingName(Sharing sharing);

struct InterferencePoint {
  uint32_t distance = 0;  // zones from the pivot
  Sharing sharing = Sharing::kUnknown;
  int64_t median_ns = 0;
};

struct InterferenceSeries {
  DeviceOp op = DeviceOp::kRead;
  int64_t alone_ns = 0;  // median without a neighbour
  std::vector<InterferencePoint> points = {};

  // Returns the median over the points of one kind of sharing; empty if there are none.
  std::optional<int64_t> Band(Sharing sharing) const;
};

struct InterferencePlan {
  uint64_t transfer = 0;  // bytes of each command: whole blocks, at most a zone's capacity
  uint32_t distances = 0;
  uint32_t samples = 0;                    // commands measured of each zone
  std::optional<Profile> profile;          // the profile whose timing the device has, if it is known
  std::function<void(uint64_t)> progress;  // called with the number of points measured so far
};

// Measure zones 0..plan.distances of `zones`, of which the first is the pivot.
Result<InterferenceSeries> MeasureReads(ZonedDevice& device, ScratchZones& zones, const InterferencePlan& plan);
Result<InterferenceSeries> MeasureWrites(ZonedDevice& device, ScratchZones& zones, const InterferencePlan& plan);

void PrintInterference(const InterferenceSeries& series, Console& console);
std::string InterferenceSvg(const std::vector<InterferenceSeries>& series, const std::string& device,
                            uint64_t transfer);

}  // namespace isozone::cli
