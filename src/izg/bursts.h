// Bursts of pivots and needles, and what the device's own latencies say about them.
//
// Blocks that cannot be read are looked for, left out from then on, and the burst is sent again. A zone with too many of
// them, and one that fails otherwise, ends what is under way with an error, and is the lost_zone().
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

// Keeps the dies of `zone` busy: `load` times what was calibrated as one pivot.
struct Pivot {
  ZoneId zone;
  uint32_t load = 1;
};

// What happens more often must not decide alone.
inline constexpr double kRareFalseLoud = 0.0001;

// How long a needle took, and what that means.
enum class Loudness : uint8_t { kDoubtful, kQuiet, kLoud, kLouder };

// Latencies in ns. What lies between the ranges is doubtful.
struct LoudnessRanges {
  int64_t quiet_to = 0;
  int64_t loud_from = 0, loud_to = 0;
  int64_t louder_from = 0, louder_to = 0;
  Loudness Judge(int64_t latency_ns) const;
};

// Thread safety: none.
class Bursts {
 public:
  // `before_burst` is called before every burst, which is not sent where it returns an error.
  Bursts(Prober& prober, uint64_t seed, std::function<Status()> before_burst);

  // Writes what a needle or a pivot in this zone will read, where the zone was empty. A zone prepared for pivots serves
  // needles too.
  Status PrepareNeedles(std::span<const ZoneId> zones) { return Prepare(zones, needle_span_); }
  Status PreparePivot(ZoneId zone) { return Prepare({&zone, 1}, pivot_span_); }
  // Whether it is empty, or has enough data to be read as a pivot.
  bool CanBePivot(ZoneId zone) const;
  // Empties zones that were prepared; ignores others.
  Status Release(std::span<const ZoneId> zones);
  Status ReleaseAll();
  uint64_t bytes_prepared() const { return bytes_prepared_; }

  // Finds the size of a pivot and the ranges, with `pivot` (prepared as such) and the crowd of `zones` (prepared for
  // needles). False if no load of `pivot` makes a needle in its own zone loud. kBusy where latencies vary so much that
  // quiet and loud cannot be told apart.
  Result<bool> Calibrate(ZoneId pivot, std::span<const ZoneId> zones);

  // What is to be done where a pivot was read so soon after the last needle was sent that they may not have met.
  enum class Meeting : uint8_t {
    kMust,  // it is done again, then with half of the needles; kBusy where one does not meet it: the host is too slow
    kMay,   // nothing
  };
  // The latency of each needle behind all pivots, in one burst.
  Result<std::vector<int64_t>> Latencies(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                         Meeting meeting = Meeting::kMust);
  // In bursts of at most `crowd` needles; what is doubtful is measured again a few times.
  Result<std::vector<Loudness>> Measure(std::span<const Pivot> pivots, std::span<const ZoneId> needles, size_t crowd,
                                        const LoudnessRanges& ranges, Meeting meeting = Meeting::kMust);
  // How long each of these zones takes to read one pivot of its own, beside the others.
  Result<std::vector<int64_t>> PivotLatencies(std::span<const ZoneId> zones);

  const LoudnessRanges& ranges() const { return ranges_; }
  // The load of the second pivot of a pair, so large that a needle behind it is louder than one behind the first.
  uint32_t louder_load() const { return louder_load_; }
  int64_t alone_quiet() const { return alone_quiet_; }  // ns; where quiet ends for a single needle
  int64_t crowd_quiet() const { return crowd_quiet_; }  // ns; few needles in a crowd without pivots take longer
  size_t crowd() const { return crowd_; }               // needles in a burst, if they are of many groups
  size_t small_crowd() const { return small_crowd_; }   // and if they may all be of one
  // The chance that a needle seems louder than it is, because its read was late for another reason: in a crowd, and alone.
  double false_loud() const { return false_loud_; }
  double false_loud_alone() const { return false_loud_alone_; }
  // The zone that the last error was about, where all others can still be measured.
  std::optional<ZoneId> lost_zone() const { return lost_zone_; }
  uint64_t unreadable_blocks() const { return unreadable_blocks_; }
  uint64_t reads() const { return reads_; }
  uint64_t bursts() const { return bursts_; }
  int64_t burst_ns() const { return burst_ns_; }

 private:
  Status Prepare(std::span<const ZoneId> zones, uint64_t bytes);
  void AddPivot(const Pivot& pivot, std::vector<ProbeRead>& burst) const;
  ProbeRead Needle(ZoneId zone);
  // False: some reads failed, for blocks that are left out from now on; it is to be done again.
  Result<bool> Run(std::vector<ProbeRead>& burst);
  Status FindUnreadable(ProbeRead read);
  // Takes note of the zone that an error of the prober is about.
  Status Noted(Status status);
  // Where the next read of the zone begins, at or behind `offset`, and where it ends at the latest; below `span`.
  std::pair<uint64_t, uint64_t> NextReadable(ZoneId zone, uint64_t offset, uint64_t span) const;
  bool IsUnreadable(ZoneId zone, uint64_t offset) const;
  bool Missed(std::span<const ProbeRead> burst, std::span<const size_t> last_of_pivot) const;
  Result<std::vector<int64_t>> Repeat(std::span<const Pivot> pivots, ZoneId needle, int times);
  Result<std::vector<int64_t>> SampleCrowd(std::span<const ZoneId> zones, size_t crowd, size_t count);
  Status CalibrateCrowd(std::span<const ZoneId> zones, int64_t loud);
  void SetRanges(int64_t limit, std::span<const int64_t> loud, std::span<const int64_t> louder, int64_t queueing);
  double FalseLoud(const std::vector<int64_t>& quiet, std::span<const int64_t> loud, int64_t queueing) const;

  Prober& prober_;
  Random random_;
  const std::function<Status()> before_burst_;
  const uint64_t needle_span_;  // bytes
  const uint64_t pivot_span_;   // bytes
  uint64_t pivot_bytes_ = 0;    // read by a pivot of load 1
  LoudnessRanges ranges_;
  uint32_t louder_load_ = 1;
  size_t crowd_ = 1;
  size_t small_crowd_ = 1;
  int64_t alone_quiet_ = 0;
  int64_t crowd_quiet_ = 0;
  double false_loud_ = 0;
  double false_loud_alone_ = 0;
  bool calibrated_ = false;

  std::unordered_map<uint32_t, uint64_t> readable_;              // bytes, by zone
  std::unordered_map<uint32_t, uint64_t> prepared_;              // bytes, by zone that was empty
  std::unordered_map<uint32_t, std::set<uint64_t>> unreadable_;  // blocks: bytes from the start of the zone, by zone
  std::optional<ZoneId> lost_zone_;
  uint64_t unreadable_blocks_ = 0;
  uint64_t bytes_prepared_ = 0;
  uint64_t reads_ = 0;
  uint64_t bursts_ = 0;
  int64_t burst_ns_ = 0;
};

// The value below which `share` (0..1) of `values` lie; there is at least one.
int64_t Quantile(std::vector<int64_t> values, double share);

}  // namespace isozone
