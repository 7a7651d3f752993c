#include "izg/latency_probe.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kPivotSpan = 8 * kMiB;  // touches every die of a zone that lies on many
constexpr int kSoloSamples = 32;
constexpr int kDelayedSamples = 12;
constexpr size_t kCrowdSamples = 600;
// So many that the samples include what delays only one needle in a hundred.
constexpr size_t kDelaySamples = 1600;
constexpr size_t kLargestCrowd = 384;
constexpr uint64_t kSmallestPivot = kMiB;  // bytes
constexpr uint64_t kLargestPivot = 16 * kMiB;
constexpr uint32_t kLeastHeavyLoad = 4, kMostHeavyLoad = 12;
constexpr int kTriesOfNeedle = 4;  // of a doubtful needle
constexpr int kTriesOfBurst = 8;
constexpr size_t kLoneSamples = 200;
// A zone with so many unreadable blocks is given up.
constexpr size_t kMostUnreadable = 16;

// A needle behind a pivot takes at least this many times as long as one alone, ...
constexpr double kDelayedOverSolo = 20;
// ... and than one in a crowd.
constexpr double kDelayedOverCrowd = 2.2;
// How far the ranges extend beyond the latencies that were measured, as factors.
constexpr double kMargin = 1.1;
constexpr double kLongest = 1.5;
constexpr double kShortest = 0.8;
constexpr double kShortestHeavy = 0.9;
// How long a queue of needles of one zone may take, as a share of the longest undelayed latency. Longer queues would
// look like interference.
constexpr double kQueueing = 0.5;
// What sharing a channel with another pivot may add at most: a factor of the pivot's time, and so many times the time
// of each needle in a queue.
constexpr double kOtherPivot = 1.3;
constexpr int64_t kQueueOnChannel = 3;

int64_t Scaled(double factor, int64_t value) { return static_cast<int64_t>(factor * static_cast<double>(value)); }

// The geometric mean: it is as many times longer than `undelayed` as `delayed` is longer than it.
int64_t Between(int64_t undelayed, int64_t delayed) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(undelayed) * static_cast<double>(delayed)));
}

}  // namespace

int64_t Quantile(std::vector<int64_t> values, double share) {
  const auto rank = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<size_t>(rank)];
}

Interference InterferenceRanges::Judge(int64_t latency_ns) const {
  if (latency_ns <= none_to) return Interference::kNone;
  if (latency_ns >= light_from && latency_ns <= light_to) return Interference::kLight;
  if (latency_ns >= heavy_from && latency_ns <= heavy_to) return Interference::kHeavy;
  return Interference::kDoubtful;
}

LatencyProbe::LatencyProbe(Prober& prober, uint64_t seed, std::function<Status()> before_burst)
    : prober_(prober),
      random_(seed),
      before_burst_(std::move(before_burst)),
      needle_span_(std::clamp<uint64_t>(prober.geometry().optimal_write, prober.geometry().block_size,
                                        prober.geometry().zone_capacity)),
      pivot_span_(std::min(std::max(kPivotSpan, needle_span_), prober.geometry().zone_capacity)) {
  for (const ProbeZone& zone : prober.zones()) readable_[zone.zone.value()] = zone.readable;
}

Status LatencyProbe::Prepare(std::span<const ZoneId> zones, uint64_t bytes) {
  std::vector<ZoneId> to_write;
  for (const ZoneId zone : zones) {
    const bool in_use = readable_[zone.value()] > 0 && !prepared_.contains(zone.value());
    if (!in_use && prepared_[zone.value()] < bytes) to_write.push_back(zone);
  }
  for (const ZoneId zone : to_write) {
    counts_.bytes_prepared += bytes - prepared_[zone.value()];
    readable_[zone.value()] = prepared_[zone.value()] = bytes;  // even if writing fails: the zone must be released
  }
  return Noted(prober_.Prepare(to_write, bytes));
}

bool LatencyProbe::CanBePivot(ZoneId zone) const {
  const uint64_t readable = readable_.at(zone.value());
  return readable == 0 || prepared_.contains(zone.value()) ||
         readable >= std::min(kSmallestPivot, prober_.geometry().zone_capacity);
}

Status LatencyProbe::Release(std::span<const ZoneId> zones) {
  std::vector<ZoneId> written;
  for (const ZoneId zone : zones) {
    if (prepared_.erase(zone.value()) == 0) continue;
    readable_[zone.value()] = 0;
    written.push_back(zone);
  }
  // If a zone cannot be reset any more, the results of the other zones still count.
  const Status released = prober_.Release(written);
  return prober_.failed_zone() ? Status::Ok() : released;
}

Status LatencyProbe::Noted(Status status) {
  if (!status.ok()) lost_zone_ = prober_.failed_zone();
  return status;
}

Status LatencyProbe::ReleaseAll() {
  std::vector<ZoneId> zones;
  for (const auto& [zone, bytes] : prepared_) zones.emplace_back(zone);
  return Release(zones);
}

// Large reads from the beginning of the zone, which start over at its end.
void LatencyProbe::AddPivot(const Pivot& pivot, std::vector<ProbeRead>& burst) const {
  const uint64_t block = prober_.geometry().block_size;
  const uint64_t span = std::max(block, std::min(readable_.at(pivot.zone.value()), pivot_span_) / block * block);
  uint64_t left = pivot.load * pivot_bytes_;
  for (uint64_t offset = 0; left > 0;) {
    const auto [begin, end] = NextReadable(pivot.zone, offset, span);
    const uint64_t length = std::min({left, prober_.max_read(), end - begin});
    burst.push_back({pivot.zone, begin, length, 0});
    offset = (begin + length) % span;
    left -= length;
  }
}

bool LatencyProbe::IsUnreadable(ZoneId zone, uint64_t offset) const {
  const auto found = unreadable_.find(zone.value());
  return found != unreadable_.end() && found->second.contains(offset);
}

// At least one block is readable; otherwise the zone would be lost.
std::pair<uint64_t, uint64_t> LatencyProbe::NextReadable(ZoneId zone, uint64_t offset, uint64_t span) const {
  while (IsUnreadable(zone, offset)) offset = (offset + prober_.geometry().block_size) % span;
  const auto found = unreadable_.find(zone.value());
  if (found == unreadable_.end()) return {offset, span};
  const auto next = found->second.upper_bound(offset);
  return {offset, next == found->second.end() ? span : std::min(span, *next)};
}

ProbeRead LatencyProbe::Needle(ZoneId zone) {
  const uint64_t block = prober_.geometry().block_size;
  const uint64_t blocks = std::max<uint64_t>(1, std::min(readable_[zone.value()], pivot_span_) / block);
  return {zone, NextReadable(zone, random_.Below(blocks) * block, blocks * block).first, block, 0};
}

Result<bool> LatencyProbe::Run(std::vector<ProbeRead>& burst) {
  ISOZONE_RETURN_IF_ERROR(before_burst_());
  ISOZONE_RETURN_IF_ERROR(Noted(prober_.Burst(burst)));
  int64_t longest = 0;
  for (const ProbeRead& read : burst) longest = std::max(longest, read.latency_ns);
  counts_.reads += burst.size();
  ++counts_.bursts;
  counts_.burst_ns += longest;
  bool whole = true;
  for (const ProbeRead& read : burst) {
    // Several reads of a burst may include the same unreadable block.
    if (!read.failed || (read.length == prober_.geometry().block_size && IsUnreadable(read.zone, read.offset)))
      continue;
    whole = false;
    ISOZONE_RETURN_IF_ERROR(FindUnreadable(read));
  }
  return whole;
}

// Halves the range that failed until one block is left.
Status LatencyProbe::FindUnreadable(ProbeRead read) {
  const uint64_t block = prober_.geometry().block_size;
  while (read.length > block) {
    ProbeRead half = read;
    half.length = RoundDown(read.length / 2, block);
    ISOZONE_RETURN_IF_ERROR(Noted(prober_.Burst({&half, 1})));
    if (!half.failed) read.offset += half.length;
    read.length = half.failed ? half.length : read.length - half.length;
  }
  std::set<uint64_t>& unreadable = unreadable_[read.zone.value()];
  if (unreadable.insert(read.offset).second) ++counts_.unreadable_blocks;
  const uint64_t blocks = std::min({readable_[read.zone.value()], pivot_span_, needle_span_}) / block;
  if (unreadable.size() < std::min<uint64_t>(kMostUnreadable, std::max<uint64_t>(blocks, 1))) return Status::Ok();
  lost_zone_ = read.zone;
  return Status::IoError(fmt::format("{} blocks of zone {} cannot be read", unreadable.size(), read.zone.value()));
}

Result<std::vector<int64_t>> LatencyProbe::Latencies(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                                     Meeting meeting) {
  for (int tries = 0; tries < kTriesOfBurst;) {
    std::vector<ProbeRead> burst;
    std::vector<size_t> last_of_pivot;
    for (const Pivot& pivot : pivots) {
      AddPivot(pivot, burst);
      last_of_pivot.push_back(burst.size() - 1);
    }
    const size_t first = burst.size();
    for (const ZoneId zone : needles) burst.push_back(Needle(zone));
    ISOZONE_ASSIGN_OR_RETURN(const bool whole, Run(burst));
    if (!whole) continue;
    ++tries;
    if (meeting == Meeting::kMust && calibrated_ && Missed(burst, last_of_pivot)) continue;
    std::vector<int64_t> latencies;
    for (size_t i = first; i < burst.size(); ++i) latencies.push_back(burst[i].latency_ns);
    return latencies;
  }
  if (needles.size() > 1) {
    const size_t half = needles.size() / 2;
    ISOZONE_ASSIGN_OR_RETURN(std::vector<int64_t> latencies, Latencies(pivots, needles.first(half), meeting));
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> others, Latencies(pivots, needles.subspan(half), meeting));
    latencies.insert(latencies.end(), others.begin(), others.end());
    return latencies;
  }
  return Status::Busy(
      "the device reads faster than this host sends reads, so that they do not meet: measure with nothing else "
      "running, an emulated device at a lower speed");
}

// The pivots must have lasted long enough to delay the last needle. Sending the second pivot must not have taken so
// long that the first one delays the needles less than it did when it was calibrated.
bool LatencyProbe::Missed(std::span<const ProbeRead> burst, std::span<const size_t> last_of_pivot) const {
  if (last_of_pivot.empty()) return false;
  const size_t needles = burst.size() - 1 - last_of_pivot.back();
  const int64_t until_ns =
      burst.back().submitted_ns + (needles == 1 ? calibration_.undelayed_alone_ns : calibration_.ranges.none_to);
  const int64_t sending_ns = burst[last_of_pivot.back()].submitted_ns - burst[last_of_pivot.front()].submitted_ns;
  return 2 * sending_ns > calibration_.ranges.light_from ||
         std::ranges::any_of(last_of_pivot, [&burst, until_ns](size_t pivot) {
           return burst[pivot].submitted_ns + burst[pivot].latency_ns < until_ns;
         });
}

Result<std::vector<int64_t>> LatencyProbe::PivotLatencies(std::span<const ZoneId> zones) {
  std::vector<ProbeRead> burst;
  std::vector<size_t> last;
  for (bool whole = false; !whole;) {
    burst.clear();
    last.clear();
    for (const ZoneId zone : zones) {
      AddPivot({zone, 1}, burst);
      last.push_back(burst.size() - 1);
    }
    ISOZONE_ASSIGN_OR_RETURN(whole, Run(burst));
  }
  std::vector<int64_t> latencies;
  for (const size_t i : last) latencies.push_back(burst[i].latency_ns);
  return latencies;
}

Result<std::vector<Interference>> LatencyProbe::Measure(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                                        size_t crowd, const InterferenceRanges& ranges,
                                                        Meeting meeting) {
  std::vector<Interference> interference(needles.size(), Interference::kDoubtful);
  for (int tries = 0; tries < kTriesOfNeedle; ++tries) {
    std::vector<size_t> doubtful;
    for (size_t i = 0; i < needles.size(); ++i) {
      if (interference[i] == Interference::kDoubtful) doubtful.push_back(i);
    }
    for (size_t begin = 0; begin < doubtful.size(); begin += crowd) {
      const auto now = std::span(doubtful).subspan(begin, std::min(crowd, doubtful.size() - begin));
      std::vector<ZoneId> zones;
      for (const size_t i : now) zones.push_back(needles[i]);
      ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> latencies, Latencies(pivots, zones, meeting));
      for (size_t i = 0; i < now.size(); ++i) interference[now[i]] = ranges.Judge(latencies[i]);
    }
  }
  return interference;
}

Result<std::vector<int64_t>> LatencyProbe::Repeat(std::span<const Pivot> pivots, ZoneId needle, int times) {
  std::vector<int64_t> all;
  for (int i = 0; i < times; ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> one, Latencies(pivots, {&needle, 1}));
    all.push_back(one.front());
  }
  return all;
}

// The latencies of needles without a pivot, in crowds of this size.
Result<std::vector<int64_t>> LatencyProbe::SampleCrowd(std::span<const ZoneId> zones, size_t crowd, size_t count) {
  std::vector<int64_t> samples;
  for (size_t next = 0; samples.size() < count; next += crowd) {
    std::vector<ZoneId> needles;
    for (size_t i = 0; i < crowd; ++i) needles.push_back(zones[(next + i) % zones.size()]);
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> latencies, Latencies({}, needles));
    samples.insert(samples.end(), latencies.begin(), latencies.end());
  }
  return samples;
}

// Finds the largest crowd whose needles can still be told from those behind a pivot.
Status LatencyProbe::CalibrateCrowd(std::span<const ZoneId> zones, int64_t delayed) {
  for (calibration_.crowd = kLargestCrowd;; calibration_.crowd = std::max<size_t>(1, calibration_.crowd / 2)) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> samples, SampleCrowd(zones, calibration_.crowd, kCrowdSamples));
    calibration_.undelayed_in_crowd_ns = Quantile(samples, 0.97);
    if (static_cast<double>(delayed) >= kDelayedOverCrowd * static_cast<double>(calibration_.undelayed_in_crowd_ns))
      return Status::Ok();
    if (calibration_.crowd == 1) {
      return Status::Busy(
          "single reads take as long, time and again, as reads behind others: measure with nothing else running");
    }
  }
}

Result<bool> LatencyProbe::Calibrate(ZoneId pivot, std::span<const ZoneId> zones) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> alone, Repeat({}, pivot, kSoloSamples));
  const int64_t solo = std::max<int64_t>(1, Quantile(alone, 0.1));  // a busy host delays some samples
  std::vector<int64_t> behind;
  for (pivot_bytes_ = kSmallestPivot;; pivot_bytes_ *= 2) {
    if (pivot_bytes_ > kLargestPivot) return false;
    const Pivot one{pivot, 1};
    ISOZONE_ASSIGN_OR_RETURN(behind, Repeat({&one, 1}, pivot, kDelayedSamples));
    if (static_cast<double>(Quantile(behind, 0.1)) >= kDelayedOverSolo * static_cast<double>(solo)) break;
  }
  const int64_t shortest = Quantile(behind, 0.1);
  ISOZONE_RETURN_IF_ERROR(CalibrateCrowd(zones, shortest));
  calibration_.undelayed_alone_ns = Between(solo, shortest);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lone, SampleCrowd(zones, 1, kLoneSamples));
  const auto late =
      std::ranges::count_if(lone, [this](int64_t latency) { return latency > calibration_.undelayed_alone_ns; });
  calibration_.false_interference_alone =
      static_cast<double>(late + 1) / static_cast<double>(lone.size());  // one more than was seen
  const int64_t limit = Between(calibration_.undelayed_in_crowd_ns, shortest);

  // Needles of one zone queue behind one another. What each of them adds limits a crowd that may be of one group.
  const std::vector<ZoneId> queue(16, pivot);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> queued, Latencies({}, queue));
  const int64_t each = std::max<int64_t>(1, (Quantile(queued, 0.8) - solo) / 12);
  calibration_.small_crowd =
      std::clamp<size_t>(static_cast<size_t>(Scaled(kQueueing, limit) / each), 1, calibration_.crowd);
  const int64_t queueing = static_cast<int64_t>(calibration_.small_crowd) * each;

  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> undelayed,
                           SampleCrowd(zones, calibration_.small_crowd, kDelaySamples));
  for (calibration_.heavy_load = kLeastHeavyLoad;; ++calibration_.heavy_load) {
    const Pivot heavy{pivot, calibration_.heavy_load};
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> behind_heavy, Repeat({&heavy, 1}, pivot, kDelayedSamples));
    SetRanges(limit, behind, behind_heavy, queueing);
    calibration_.false_interference = FalseInterference(undelayed, behind, queueing);
    if (calibration_.false_interference <= kRareFalseInterference || calibration_.heavy_load == kMostHeavyLoad) break;
  }
  calibrated_ = true;
  return true;
}

void LatencyProbe::SetRanges(int64_t limit, std::span<const int64_t> delayed, std::span<const int64_t> heavy,
                             int64_t queueing) {
  const int64_t usual = Quantile({delayed.begin(), delayed.end()}, 0.5);
  const int64_t usual_heavy = Quantile({heavy.begin(), heavy.end()}, 0.5);
  calibration_.ranges.none_to = Scaled(1 / kMargin, limit);
  calibration_.ranges.light_from = Scaled(kShortest, Quantile({delayed.begin(), delayed.end()}, 0.1));
  calibration_.ranges.light_to = Scaled(kLongest, usual + queueing);
  calibration_.ranges.heavy_from =
      std::max(calibration_.ranges.light_to + 1, Scaled(kShortestHeavy, Quantile({heavy.begin(), heavy.end()}, 0.1)));
  calibration_.ranges.heavy_to = Scaled(kLongest, usual_heavy + queueing);
}

// Whatever delays a needle without a pivot may delay any needle. So the delays that were seen among `undelayed` are
// added to an undelayed needle, and to a delayed one that is the last of its queue while another pivot uses its
// channel.
double LatencyProbe::FalseInterference(const std::vector<int64_t>& undelayed, std::span<const int64_t> delayed,
                                       int64_t queueing) const {
  const int64_t usual = Quantile(undelayed, 0.5);
  size_t none_wrong = 0, light_wrong = 0;
  for (const int64_t latency : undelayed) {
    if (calibration_.ranges.Judge(latency) >= Interference::kLight) ++none_wrong;
    for (const int64_t behind : delayed) {
      const int64_t longest = Scaled(kOtherPivot, behind) + kQueueOnChannel * queueing;
      if (calibration_.ranges.Judge(longest + latency - usual) == Interference::kHeavy) ++light_wrong;
    }
  }
  const auto samples = static_cast<double>(undelayed.size());
  return std::max(static_cast<double>(none_wrong) / samples,
                  static_cast<double>(light_wrong) / samples / static_cast<double>(delayed.size()));
}

}  // namespace isozone
