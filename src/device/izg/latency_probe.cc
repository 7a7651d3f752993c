#include "device/izg/latency_probe.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "device/izg/doubts.h"

namespace isozone {
namespace {

constexpr uint64_t kPivotSpan = 8 * kMiB;  // touches every die of a zone that lies on many
constexpr uint64_t kLeastNeedleSpan = 64 * kKiB;
constexpr int kSoloSamples = 32;
constexpr int kDelayedSamples = 12;
constexpr int kMostByChance = 2;   // of these that may be late without a pivot's doing
constexpr int kLeastDelayed = 11;  // of these that are, if a pivot delays them
constexpr int kHeavySamples = 5;
constexpr size_t kCrowdSamples = 600;
// So many that the samples include what delays only one needle in a hundred. On a device with fewer zones, less is
// enough.
constexpr size_t kLeastDelaySamples = 400, kMostDelaySamples = 1600;
constexpr size_t kLargestCrowd = 384;
constexpr uint64_t kSmallestPivot = kMiB;  // bytes
constexpr uint64_t kLargestPivot = 16 * kMiB;
constexpr int kTriesOfNeedle = 4;  // of a doubtful needle
constexpr size_t kFewDoubtful = 4, kManyNeedles = 16;
constexpr int kTriesOfBurst = 8;
constexpr size_t kLoneSamples = 200;
// A zone with so many unreadable blocks is given up.
constexpr size_t kMostUnreadable = 16;

// A needle behind a pivot takes at least this many times as long as one alone, ...
constexpr double kDelayedOverSolo = 20;
// ... and than one in a crowd.
constexpr double kDelayedOverCrowd = 2.2;
// How far latencies may be from what is expected, as factors. Two levels are at least this factor squared apart, even
// if all pivots share a channel.
constexpr double kMargin = 1.1;
constexpr double kLevelMargin = 1.45;
// How long a queue of needles of one zone may take, as a share of a pivot of load 1. The last of a longer queue would
// look as if it were delayed by the next larger pivot.
constexpr double kQueueing = 0.5;
// How much of a pivot must be left when the last needle is sent.
constexpr double kLeastLeft = 0.5;
// The behaviour of a device that serves the reads of a die in turn: a needle ends as much later than a heavy pivot, in
// proportion, as behind a light one, within this factor.
constexpr double kInTurn = 1.3;
constexpr double kColdOverWarm = 1.3;

int64_t Scaled(double factor, int64_t value) { return static_cast<int64_t>(factor * static_cast<double>(value)); }

// The geometric mean: it is as many times longer than `undelayed` as `delayed` is longer than it.
int64_t Between(int64_t undelayed, int64_t delayed) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(undelayed) * static_cast<double>(delayed)));
}

int64_t Latency(const std::vector<NeedleTime>& times, double share) {
  std::vector<int64_t> latencies;
  for (const NeedleTime& time : times) latencies.push_back(time.latency_ns);
  return Quantile(std::move(latencies), share);
}

}  // namespace

int64_t Quantile(std::vector<int64_t> values, double share) {
  const auto rank = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<size_t>(rank)];
}

LatencyProbe::LatencyProbe(Prober& prober, uint64_t seed, uint64_t beyond, std::function<Status()> before_burst)
    : prober_(prober),
      random_(seed),
      before_burst_(std::move(before_burst)),
      beyond_(prober.geometry().zone_capacity > 2 * beyond ? beyond : 0),
      needle_span_(std::clamp<uint64_t>(std::max(kLeastNeedleSpan, prober.geometry().optimal_write),
                                        prober.geometry().block_size, prober.geometry().zone_capacity - beyond_)),
      pivot_span_(std::min(std::max(kPivotSpan, needle_span_), prober.geometry().zone_capacity - beyond_)) {
  for (const ProbeZone& zone : prober.zones()) readable_[zone.zone.value()] = zone.readable;
}

Status LatencyProbe::Prepare(std::span<const ZoneId> zones, uint64_t bytes) {
  std::vector<ZoneId> to_write;
  for (const ZoneId zone : zones) {
    const bool in_use = readable_[zone.value()] > 0 && !prepared_.contains(zone.value());
    if (!in_use && prepared_[zone.value()] < bytes) to_write.push_back(zone);
  }
  for (const ZoneId zone : to_write) {
    counts_.bytes_prepared += bytes - prepared_[zone.value()] + (prepared_[zone.value()] == 0 ? beyond_ : 0);
    readable_[zone.value()] = prepared_[zone.value()] = bytes;  // even if writing fails: the zone must be released
  }
  return Noted(prober_.Prepare(to_write, bytes + beyond_));
}

Status LatencyProbe::WriteFiller(std::span<const ZoneId> zones) {
  const uint64_t bytes = prober_.geometry().zone_capacity;
  const Status written = prober_.Prepare(zones, bytes);
  counts_.bytes_prepared += zones.size() * bytes;
  const Status released = prober_.Release(zones);
  ISOZONE_RETURN_IF_ERROR(Noted(written));
  return Noted(released);
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
  const uint64_t blocks = std::max<uint64_t>(1, std::min(readable_[zone.value()], needle_span_) / block);
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

Result<std::vector<NeedleTime>> LatencyProbe::Latencies(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
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
    std::vector<NeedleTime> times;
    for (size_t i = first; i < burst.size(); ++i) {
      NeedleTime& time = times.emplace_back();
      time.latency_ns = burst[i].latency_ns;
      for (size_t j = 0; j < std::min(last_of_pivot.size(), kMostLevels); ++j) {
        const ProbeRead& pivot = burst[last_of_pivot[j]];
        time.pivot_ns[j] = pivot.submitted_ns + pivot.latency_ns - burst[i].submitted_ns;
      }
    }
    return times;
  }
  if (needles.size() > 1) {
    const size_t half = needles.size() / 2;
    ISOZONE_ASSIGN_OR_RETURN(std::vector<NeedleTime> times, Latencies(pivots, needles.first(half), meeting));
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> others, Latencies(pivots, needles.subspan(half), meeting));
    times.insert(times.end(), others.begin(), others.end());
    return times;
  }
  return Status::Busy(
      "the device reads faster than this host sends reads, so that they do not meet: measure with nothing else "
      "running, an emulated device at a lower speed");
}

// The pivots must have lasted long enough to delay the last needle clearly.
bool LatencyProbe::Missed(std::span<const ProbeRead> burst, std::span<const size_t> last_of_pivot) const {
  if (last_of_pivot.empty()) return false;
  const int64_t until_ns = burst.back().submitted_ns + Scaled(kLeastLeft, calibration_.pivot_ns);
  return std::ranges::any_of(last_of_pivot, [&burst, until_ns](size_t pivot) {
    return burst[pivot].submitted_ns + burst[pivot].latency_ns < until_ns;
  });
}

Result<bool> LatencyProbe::IsDelayed(ZoneId pivot, ZoneId needle) {
  const Pivot one{pivot, 1};
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> times, Latencies({&one, 1}, {&needle, 1}));
  return times.front().latency_ns > calibration_.undelayed_alone_ns;
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

Verdict LatencyProbe::Judge(const NeedleTime& time, size_t pivots) const {
  const auto delays = std::span(time.pivot_ns).first(std::min(pivots, kMostLevels));
  const int64_t lightest = Scaled(calibration_.behind_pivot, std::ranges::min(delays));
  if (time.latency_ns <= Scaled(1 / kMargin, Between(calibration_.undelayed_in_crowd_ns, lightest))) return kUndelayed;
  Verdict verdict = kDoubtful;
  for (size_t i = 0; i < delays.size(); ++i) {
    const int64_t expected = Scaled(calibration_.behind_pivot, delays[i]);
    if (time.latency_ns < Scaled(1 / kLevelMargin, expected)) continue;
    if (time.latency_ns > Scaled(kLevelMargin, expected) + calibration_.queueing_ns) continue;
    if (verdict != kDoubtful) return kDoubtful;
    verdict = static_cast<Verdict>(i);
  }
  return verdict;
}

Result<std::vector<Verdict>> LatencyProbe::Measure(std::span<const Pivot> pivots, std::span<const ZoneId> needles,
                                                   size_t crowd) {
  std::vector<Verdict> verdicts(needles.size(), kDoubtful);
  for (int tries = 0; tries < kTriesOfNeedle; ++tries) {
    std::vector<size_t> doubtful;
    for (size_t i = 0; i < needles.size(); ++i) {
      if (verdicts[i] == kDoubtful) doubtful.push_back(i);
    }
    // A burst for a few of many is not worth its pivots: they will be measured with others.
    if (tries > 0 && doubtful.size() < kFewDoubtful && needles.size() >= kManyNeedles) break;
    const size_t bursts = (doubtful.size() + crowd - 1) / crowd;
    for (size_t burst = 0; burst < bursts; ++burst) {  // of equal size
      const size_t begin = burst * doubtful.size() / bursts, end = (burst + 1) * doubtful.size() / bursts;
      const auto now = std::span(doubtful).subspan(begin, end - begin);
      std::vector<ZoneId> zones;
      for (const size_t i : now) zones.push_back(needles[i]);
      ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> times, Latencies(pivots, zones));
      for (size_t i = 0; i < now.size(); ++i) verdicts[now[i]] = Judge(times[i], pivots.size());
    }
  }
  return verdicts;
}

Result<std::vector<NeedleTime>> LatencyProbe::Repeat(std::span<const Pivot> pivots, ZoneId needle, int times) {
  std::vector<NeedleTime> all;
  for (int i = 0; i < times; ++i) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> one, Latencies(pivots, {&needle, 1}));
    all.push_back(one.front());
  }
  return all;
}

// --- First reads ---

Status LatencyProbe::FindWhetherCold(std::span<const ZoneId> zones) {
  std::vector<ProbeRead> burst;
  for (const ZoneId zone : zones) burst.push_back(Needle(zone));
  std::array<int64_t, 2> usual_ns{};
  for (int64_t& usual : usual_ns) {
    ISOZONE_RETURN_IF_ERROR(Run(burst).status());
    std::vector<int64_t> latencies;
    for (const ProbeRead& read : burst) latencies.push_back(read.latency_ns);
    usual = Quantile(std::move(latencies), 0.5);
  }
  cold_ = static_cast<double>(usual_ns[0]) > kColdOverWarm * static_cast<double>(usual_ns[1]);
  return Status::Ok();
}

Status LatencyProbe::WarmUp(std::span<const ZoneId> zones) {
  if (!cold_ || zones.empty()) return Status::Ok();
  return Latencies({}, zones).status();
}

// --- Calibration ---

// The latencies of needles without a pivot, in crowds of this size.
Result<std::vector<int64_t>> LatencyProbe::SampleCrowd(std::span<const ZoneId> zones, size_t crowd, size_t count) {
  std::vector<int64_t> samples;
  for (size_t next = 0; samples.size() < count; next += crowd) {
    std::vector<ZoneId> needles;
    for (size_t i = 0; i < crowd; ++i) needles.push_back(zones[(next + i) % zones.size()]);
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> times, Latencies({}, needles));
    for (const NeedleTime& time : times) samples.push_back(time.latency_ns);
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

Result<LatencyProbe::Delays> LatencyProbe::Calibrate(ZoneId pivot, std::span<const ZoneId> zones) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> alone, Repeat({}, pivot, kSoloSamples));
  const int64_t solo = std::max<int64_t>(1, Latency(alone, 0.1));  // a busy host delays some samples
  std::vector<NeedleTime> behind;
  std::ptrdiff_t most = 0;
  for (pivot_bytes_ = kSmallestPivot;; pivot_bytes_ *= 2) {
    if (pivot_bytes_ > kLargestPivot) return most <= kMostByChance ? Delays::kNever : Delays::kSometimes;
    const Pivot one{pivot, 1};
    ISOZONE_ASSIGN_OR_RETURN(behind, Repeat({&one, 1}, pivot, kDelayedSamples));
    const auto delayed = std::ranges::count_if(
        behind, [solo](const NeedleTime& time) { return time.latency_ns >= Scaled(kDelayedOverSolo, solo); });
    most = std::max(most, delayed);
    if (delayed >= kLeastDelayed) break;
  }
  std::vector<double> ratios;
  std::vector<int64_t> pivots_ns;
  for (const NeedleTime& time : behind) {
    pivots_ns.push_back(time.pivot_ns[0]);
    ratios.push_back(static_cast<double>(time.latency_ns) /
                     static_cast<double>(std::max<int64_t>(1, time.pivot_ns[0])));
  }
  std::ranges::sort(ratios);
  calibration_.behind_pivot = ratios[ratios.size() / 2];
  calibration_.pivot_ns = Quantile(pivots_ns, 0.5);
  const int64_t shortest = Latency(behind, 0.1);
  ISOZONE_RETURN_IF_ERROR(CalibrateCrowd(zones, shortest));
  calibration_.undelayed_alone_ns = Between(solo, shortest);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lone, SampleCrowd(zones, 1, kLoneSamples));
  const auto late =
      std::ranges::count_if(lone, [this](int64_t latency) { return latency > calibration_.undelayed_alone_ns; });
  calibration_.false_interference_alone =
      static_cast<double>(late + 1) / static_cast<double>(lone.size());  // one more than was seen
  ISOZONE_RETURN_IF_ERROR(CalibrateSmallCrowd(pivot, solo));
  ISOZONE_RETURN_IF_ERROR(CalibrateLevels(pivot));
  const size_t samples = std::clamp(prober_.zones().size(), kLeastDelaySamples, kMostDelaySamples);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> undelayed, SampleCrowd(zones, calibration_.small_crowd, samples));
  const auto falsely = static_cast<double>(FalselyJudged(undelayed));
  calibration_.false_interference = falsely / static_cast<double>(undelayed.size());
  calibration_.false_interference_bound = std::min(1.0, PoissonUpper(falsely) / static_cast<double>(undelayed.size()));
  calibrated_ = true;
  return Delays::kAlways;
}

// Needles of one zone queue behind one another. What each of them adds limits a crowd that may be of one group.
Status LatencyProbe::CalibrateSmallCrowd(ZoneId pivot, int64_t solo) {
  const std::vector<ZoneId> queue(16, pivot);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> queued, Latencies({}, queue));
  const int64_t each = std::max<int64_t>(1, (Latency(queued, 0.8) - solo) / 12);
  calibration_.small_crowd =
      std::clamp<size_t>(static_cast<size_t>(Scaled(kQueueing, calibration_.pivot_ns) / each), 1, calibration_.crowd);
  calibration_.queueing_ns = static_cast<int64_t>(calibration_.small_crowd) * each;
  return Status::Ok();
}

// Pivots of different loads can be told apart where needles wait for the end of a pivot, however large it is.
Status LatencyProbe::CalibrateLevels(ZoneId pivot) {
  const Pivot heavy{pivot, kLoads.back()};
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> behind, Repeat({&heavy, 1}, pivot, kHeavySamples));
  std::vector<double> ratios;
  for (const NeedleTime& time : behind) {
    ratios.push_back(static_cast<double>(time.latency_ns) /
                     static_cast<double>(std::max<int64_t>(1, time.pivot_ns[0])) / calibration_.behind_pivot);
  }
  std::ranges::sort(ratios);
  const double ratio = ratios[ratios.size() / 2];
  calibration_.levels = ratio <= kInTurn && ratio >= 1 / kInTurn ? kMostLevels : 1;
  return Status::Ok();
}

// Whatever delays a needle without a pivot may delay any needle. So the delays that were seen among `undelayed` are
// held against pivots as they usually take, and added to needles behind the lightest one.
size_t LatencyProbe::FalselyJudged(const std::vector<int64_t>& undelayed) const {
  NeedleTime time;
  for (size_t level = 0; level < kMostLevels; ++level) time.pivot_ns[level] = calibration_.pivot_ns * kLoads[level];
  const int64_t usual = Quantile(undelayed, 0.5);
  size_t undelayed_wrong = 0, delayed_wrong = 0;
  for (const int64_t latency : undelayed) {
    time.latency_ns = latency;
    if (Judge(time, calibration_.levels) >= 0) ++undelayed_wrong;
    time.latency_ns = Scaled(calibration_.behind_pivot, calibration_.pivot_ns) + latency - usual;
    if (Judge(time, calibration_.levels) > 0) ++delayed_wrong;
  }
  return std::max(undelayed_wrong, delayed_wrong);
}

}  // namespace isozone
