// LatencyProbe: measures the latency of reads (needles) behind other reads (pivots), and judges from ranges that it
// calibrated on the same device whether a pivot delayed them. identify.h explains pivots and needles.
//
// A burst is a number of reads that are sent together. The crowd of a burst is the number of its needles.
//
// If a read of a burst fails, the probe finds the blocks that cannot be read, avoids them from then on, and sends the
// burst again. If a zone has too many of them, or fails in another way, the call returns an error, and lost_zone()
// names the zone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "izg/prober.h"

namespace isozone {

// Reads that keep the dies of `zone` busy: `load` times the bytes that were calibrated as one pivot.
struct Pivot {
  ZoneId zone;
  uint32_t load = 1;
};

// If false interference is more frequent than this, a single measurement must not decide.
inline constexpr double kRareFalseInterference = 0.0001;

// What the latency of a needle says about the pivots before it.
enum class Interference : uint8_t {
  kDoubtful,  // the latency fits none of the others
  kNone,      // no pivot delayed it
  kLight,     // a pivot of load 1 delayed it
  kHeavy,     // a pivot of heavy_load() delayed it
};

// The range of latencies of each kind of interference, in ns. A latency outside all of them is doubtful.
struct InterferenceRanges {
  int64_t none_to = 0;
  int64_t light_from = 0, light_to = 0;
  int64_t heavy_from = 0, heavy_to = 0;
  Interference Judge(int64_t latency_ns) const;
};

// What Calibrate has found.
struct ProbeCalibration {
  InterferenceRanges ranges;
  // The load of the second pivot of a pair. It is so large that needles behind it take longer than those behind the
  // first.
  uint32_t heavy_load = 1;
  size_t crowd = 1;                   // needles in a burst, if they are of many groups
  size_t small_crowd = 1;             // needles in a burst, if all may be of one group
  int64_t undelayed_alone_ns = 0;     // the longest latency of a single needle that counts as undelayed
  int64_t undelayed_in_crowd_ns = 0;  // only few needles of a crowd exceed it when there is no pivot
  // The chance that a needle shows more interference than there is, because its read was late for another reason: in a
  // crowd, and alone.
  double false_interference = 0;
  double false_interference_alone = 0;
};

// What a probe has done so far.
struct ProbeCounts {
  uint64_t bytes_prepared = 0;
  uint64_t unreadable_blocks = 0;
  uint64_t reads = 0;
  uint64_t bursts = 0;
  int64_t burst_ns = 0;
};

// Thread safety: none.
class LatencyProbe {
 public:
  // `before_burst` is called before every burst. If it returns an error, the burst is not sent.
  LatencyProbe(Prober& prober, uint64_t seed, std::function<Status()> before_burst);

  // If the zone was empty, writes what a needle or a pivot will read there. A zone that is prepared for pivots serves
  // needles as well.
  Status PrepareNeedles(std::span<const ZoneId> zones) { return Prepare(zones, needle_span_); }
  Status PreparePivot(ZoneId zone) { return Prepare({&zone, 1}, pivot_span_); }
  // Whether `zone` is empty, or holds enough data to be read as a pivot.
  bool CanBePivot(ZoneId zone) const;
  // Empties those of `zones` that were prepared, and ignores the others.
  Status Release(std::span<const ZoneId> zones);
  Status ReleaseAll();

  // Finds the size of a pivot and the ranges. `pivot` must be prepared as a pivot, `zones` for needles. Returns false
  // if no load of `pivot` delays a needle in its own zone. kBusy if latencies vary so much that delayed needles cannot
  // be told from undelayed ones.
  Result<bool> Calibrate(ZoneId pivot, std::span<const ZoneId> zones);

  // Pivots and needles meet if every pivot was still being read when the last needle was sent. If they may not have
  // met:
  enum class Meeting : uint8_t {
    kMust,  // the burst is repeated, then split in halves; kBusy if even a single needle does not meet the pivots,
            // because the host sends reads too slowly
    kMay,   // the latencies count all the same
  };
  // The latency of each needle behind all pivots, in ns, in one burst if possible.
  Result<std::vector<int64_t>> Latencies(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                         Meeting meeting = Meeting::kMust);
  // The interference with each needle, measured in bursts of at most `crowd` needles. Doubtful needles are measured
  // again a few times.
  Result<std::vector<Interference>> Measure(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                            size_t crowd, const InterferenceRanges& ranges,
                                            Meeting meeting = Meeting::kMust);
  // How long one pivot takes in each of `zones`, in ns, if all of them are read at the same time.
  Result<std::vector<int64_t>> PivotLatencies(std::span<const ZoneId> zones);

  const ProbeCalibration& calibration() const { return calibration_; }
  const ProbeCounts& counts() const { return counts_; }
  // The zone that the last error was about, if all others can still be measured.
  std::optional<ZoneId> lost_zone() const { return lost_zone_; }

 private:
  Status Prepare(std::span<const ZoneId> zones, uint64_t bytes);
  void AddPivot(const Pivot& pivot, std::vector<ProbeRead>& burst) const;
  ProbeRead Needle(ZoneId zone);
  // Sends the burst. False: some reads failed; their blocks are avoided from now on, and the burst must be built again.
  Result<bool> Run(std::vector<ProbeRead>& burst);
  Status FindUnreadable(ProbeRead read);
  // Returns `status`. If it is an error of the prober, records the zone that it is about as lost.
  Status Noted(Status status);
  // The next readable range of the zone at or behind `offset` and below `span`: where it begins and ends.
  std::pair<uint64_t, uint64_t> NextReadable(ZoneId zone, uint64_t offset, uint64_t span) const;
  bool IsUnreadable(ZoneId zone, uint64_t offset) const;
  bool Missed(std::span<const ProbeRead> burst, std::span<const size_t> last_of_pivot) const;
  Result<std::vector<int64_t>> Repeat(std::span<const Pivot> pivots, ZoneId needle, int times);
  Result<std::vector<int64_t>> SampleCrowd(std::span<const ZoneId> zones, size_t crowd, size_t count);
  Status CalibrateCrowd(std::span<const ZoneId> zones, int64_t delayed);
  void SetRanges(int64_t limit, std::span<const int64_t> delayed, std::span<const int64_t> heavy, int64_t queueing);
  double FalseInterference(const std::vector<int64_t>& undelayed, std::span<const int64_t> delayed,
                           int64_t queueing) const;

  Prober& prober_;
  Random random_;
  const std::function<Status()> before_burst_;
  const uint64_t needle_span_;  // bytes
  const uint64_t pivot_span_;   // bytes
  uint64_t pivot_bytes_ = 0;    // bytes that a pivot of load 1 reads
  ProbeCalibration calibration_;
  bool calibrated_ = false;

  std::unordered_map<uint32_t, uint64_t> readable_;              // bytes, by zone
  std::unordered_map<uint32_t, uint64_t> prepared_;              // bytes, by zone; only zones that were empty
  std::unordered_map<uint32_t, std::set<uint64_t>> unreadable_;  // blocks: bytes from the start of the zone, by zone
  std::optional<ZoneId> lost_zone_;
  ProbeCounts counts_;
};

// The value below which `share` (0..1) of `values` lie. `values` must not be empty.
int64_t Quantile(std::vector<int64_t> values, double share);

}  // namespace isozone
