// LatencyProbe: measures the latency of reads (needles) behind other reads (pivots), and judges whether a pivot delayed
// them, and which. identify.h explains pivots and needles.
//
// A burst is a number of reads that are sent together. The crowd of a burst is the number of its needles.
//
// A needle that a pivot delays ends soon after it. So a burst itself says how late a delayed needle is: the latency is
// compared with the time until each pivot of this burst ended. Whatever slows the pivots slows the needles behind them
// as well: the heat of the device, a channel that pivots share, a pivot that began late. Calibration finds how much
// later than its pivot a needle ends, how large a pivot must be, and what is undelayed. The pivots of a burst have
// different loads, so that their needles can be told apart.
//
// The device may answer reads of data that was just written from memory. So a zone is prepared with more than is read
// of it, and data can be written behind it (Preparation).
//
// If a read of a burst fails, the probe finds the blocks that cannot be read, avoids them from then on, and sends the
// burst again. If a zone has too many of them, or fails in another way, the call returns an error, and lost_zone()
// names the zone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "device/izg/prober.h"

namespace isozone {

// Reads that keep the dies of `zone` busy: `load` times the bytes that were calibrated as one pivot.
struct Pivot {
  ZoneId zone;
  uint32_t load = 1;
};

// The loads of pivots by which one burst tells them apart, each about three times the one before.
inline constexpr std::array<uint32_t, 4> kLoads = {1, 3, 8, 24};
inline constexpr size_t kMostLevels = kLoads.size();

// The measurement of one needle.
struct NeedleTime {
  int64_t latency_ns = 0;
  // For each of the first pivots of the burst, the time from sending the needle to the end of the pivot.
  std::array<int64_t, kMostLevels> pivot_ns{};
};

// The result of a needle: the number of the pivot in its burst that delayed it, or one of these.
using Verdict = int;
inline constexpr Verdict kUndelayed = -1;
inline constexpr Verdict kDoubtful = -2;  // the latency fits nothing

// The result of Calibrate.
struct ProbeCalibration {
  size_t levels = 1;                  // pivots of different loads that a burst can tell apart
  size_t crowd = 1;                   // needles in a burst, if they are of many groups
  size_t small_crowd = 1;             // needles in a burst, if all may be of one group
  int64_t undelayed_alone_ns = 0;     // the longest latency of a single needle that counts as undelayed
  int64_t undelayed_in_crowd_ns = 0;  // only few needles of a crowd exceed it when there is no pivot
  int64_t pivot_ns = 0;               // how long a pivot of load 1 lasts
  double behind_pivot = 1;            // the latency of a delayed needle, as a multiple of the time until its pivot ends
  int64_t queueing_ns = 0;            // what the needles of a small crowd add if all are of one group
  // The chance that a needle is judged to be delayed by a pivot that did not delay it: as it was seen, an upper bound
  // of it, and as it was seen with one needle at a time.
  double false_interference = 0;
  double false_interference_bound = 1;
  double false_interference_alone = 0;
};

// The data that is written to zones so that reads of them reach the flash, in bytes.
struct Preparation {
  uint64_t beyond = 0;  // to each zone, behind what is read of it
  uint64_t filler = 0;  // to other zones, after a batch was prepared and before it is read
};

// The counts of what a probe has done so far.
struct ProbeCounts {
  uint64_t bytes_prepared = 0;
  uint64_t unreadable_blocks = 0;
  uint64_t reads = 0;
  uint64_t bursts = 0;
  int64_t burst_ns = 0;
  ProbeCounts& operator+=(const ProbeCounts& other) {
    bytes_prepared += other.bytes_prepared;
    unreadable_blocks += other.unreadable_blocks;
    reads += other.reads;
    bursts += other.bursts;
    burst_ns += other.burst_ns;
    return *this;
  }
};

// Thread safety: none.
class LatencyProbe {
 public:
  // `before_burst` is called before every burst. If it returns an error, the burst is not sent. `beyond` is that of
  // Preparation.
  LatencyProbe(Prober& prober, uint64_t seed, uint64_t beyond, std::function<Status()> before_burst);

  // If the zone was empty, writes what a needle or a pivot will read there. A zone that is prepared for pivots serves
  // needles as well.
  Status PrepareNeedles(std::span<const ZoneId> zones) { return Prepare(zones, needle_span_); }
  Status PreparePivot(ZoneId zone) { return Prepare({&zone, 1}, pivot_span_); }
  // Returns whether `zone` is empty, or holds enough data to be read as a pivot.
  bool CanBePivot(ZoneId zone) const;
  // Empties those of `zones` that were prepared, and ignores the others.
  Status Release(std::span<const ZoneId> zones);
  Status ReleaseAll();

  // Fills these empty zones and empties them again, so that what was written before is no longer what was written last.
  Status WriteFiller(std::span<const ZoneId> zones);
  // Finds whether the first read of an area takes longer than others, as on a device that loads its map in parts. If
  // so, WarmUp is worth its reads from then on. `zones` must be prepared, and not have been read.
  Status FindWhetherCold(std::span<const ZoneId> zones);
  // Reads each of these zones once if first reads take longer.
  Status WarmUp(std::span<const ZoneId> zones);

  // Whether needles in the zone of a pivot are delayed.
  enum class Delays : uint8_t { kNever, kSometimes, kAlways };
  // Finds the size of a pivot and the latencies that mean a delay. `pivot` must be prepared as a pivot, `zones` for
  // needles. If needles are not always delayed, nothing is calibrated. kBusy if latencies vary so much that delayed
  // needles cannot be told from undelayed ones.
  Result<Delays> Calibrate(ZoneId pivot, std::span<const ZoneId> zones);

  // Pivots and needles meet if every pivot was still being read when the last needle was sent. If they may not have
  // met:
  enum class Meeting : uint8_t {
    kMust,  // the burst is repeated, then split in halves; kBusy if even a single needle does not meet the pivots,
            // because the host sends reads too slowly
    kMay,   // the latencies count all the same
  };
  // Sends each needle behind all pivots, in one burst if possible.
  Result<std::vector<NeedleTime>> Latencies(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                            Meeting meeting = Meeting::kMust);
  // Measures whether a single needle is delayed by the only pivot.
  Result<bool> IsDelayed(ZoneId pivot, ZoneId needle);
  // Judges each needle, measured in bursts of at most `crowd` needles behind at most kMostLevels pivots. Doubtful
  // needles are measured again a few times, unless they are only a few of many.
  Result<std::vector<Verdict>> Measure(std::span<const Pivot> pivots, std::span<const ZoneId> needles, size_t crowd);
  // Measures how long one pivot takes in each of `zones`, in ns, if all of them are read at the same time.
  Result<std::vector<int64_t>> PivotLatencies(std::span<const ZoneId> zones);

  const ProbeCalibration& calibration() const { return calibration_; }
  const ProbeCounts& counts() const { return counts_; }
  // Returns the zone that the last error was about, if all others can still be measured.
  std::optional<ZoneId> lost_zone() const { return lost_zone_; }

 private:
  Status Prepare(std::span<const ZoneId> zones, uint64_t bytes);
  void AddPivot(const Pivot& pivot, std::vector<ProbeRead>& burst) const;
  ProbeRead Needle(ZoneId zone);
  // Sends the burst. Returns false if some reads failed; their blocks are avoided from now on, and the burst must be
  // built again.
  Result<bool> Run(std::vector<ProbeRead>& burst);
  Status FindUnreadable(ProbeRead read);
  // Returns `status`. If it is an error of the prober, records the zone that it is about as lost.
  Status Noted(Status status);
  // Returns the next readable range of the zone at or behind `offset` and below `span`: where it begins and ends.
  std::pair<uint64_t, uint64_t> NextReadable(ZoneId zone, uint64_t offset, uint64_t span) const;
  bool IsUnreadable(ZoneId zone, uint64_t offset) const;
  bool Missed(std::span<const ProbeRead> burst, std::span<const size_t> last_of_pivot) const;
  Verdict Judge(const NeedleTime& time, size_t pivots) const;
  Result<std::vector<NeedleTime>> Repeat(std::span<const Pivot> pivots, ZoneId needle, int times);
  Result<std::vector<int64_t>> SampleCrowd(std::span<const ZoneId> zones, size_t crowd, size_t count);
  Status CalibrateCrowd(std::span<const ZoneId> zones, int64_t delayed);
  Status CalibrateSmallCrowd(ZoneId pivot, int64_t solo);
  Status CalibrateLevels(ZoneId pivot);
  size_t FalselyJudged(const std::vector<int64_t>& undelayed) const;

  Prober& prober_;
  Random random_;
  const std::function<Status()> before_burst_;
  const uint64_t beyond_;       // bytes that are written to a zone behind what is read of it
  const uint64_t needle_span_;  // bytes
  const uint64_t pivot_span_;   // bytes
  uint64_t pivot_bytes_ = 0;    // bytes that a pivot of load 1 reads
  ProbeCalibration calibration_;
  bool calibrated_ = false;
  bool cold_ = false;  // first reads take longer

  std::unordered_map<uint32_t, uint64_t> readable_;  // bytes, by zone
  std::unordered_map<uint32_t, uint64_t> prepared_;  // bytes to be read, by zone; only zones that were empty
  std::unordered_map<uint32_t, std::set<uint64_t>> unreadable_;  // blocks: bytes from the start of the zone, by zone
  std::optional<ZoneId> lost_zone_;
  ProbeCounts counts_;
};

// Returns the value below which `share` (0..1) of `values` lie. `values` must not be empty.
int64_t Quantile(std::vector<int64_t> values, double share);

}  // namespace isozone
