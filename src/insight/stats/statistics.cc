#include "insight/stats/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/units.h"
#include "base/uri.h"

namespace isozone {
namespace {

// A rate over less time says nothing.
constexpr double kShortestSpan = 0.5;

// What was counted between two looks. A page that is not what it seems may count backwards.
uint64_t Rise(uint64_t before, uint64_t now) { return now >= before ? now - before : 0; }

std::string_view Wanted(WaitReason reason) {
  switch (reason) {
    case WaitReason::kReset:
      return "a zone that is being reset or finished";
    case WaitReason::kCollection:
      return "GC to make space";
    case WaitReason::kCheckpoint:
      return "a checkpoint that gives back zones of metadata";
    case WaitReason::kActiveZone:
      return "an active zone";
    case WaitReason::kOpenZone:
      return "an open zone";
    case WaitReason::kPace:
      return "space, at the pace at which it is made";
  }
  return "a zone";
}

std::string WhyNoActiveZone(const Statistics& statistics) {
  const PageFigures& figures = statistics.figures;
  const std::string limit = statistics.max_active_zones == 0 ? "" : fmt::format(" of {}", statistics.max_active_zones);
  return fmt::format("{}{} are active: {} for metadata, {} for logs, {} for GC, {} for data, {} of others",
                     figures.active_zones, limit, figures.active_metadata, figures.active_log, figures.active_gc,
                     figures.active_data, figures.active_others);
}

std::string WhyNoOpenZone(const Statistics& statistics) {
  const auto leased = std::ranges::count(statistics.zones, ZonePhase::kLeased, &PageZone::phase);
  return fmt::format("{} zones are being written, and the device allows {} to be open", leased,
                     statistics.max_open_zones);
}

std::string WhyNoSpace(const WaitView& wait, const Statistics& statistics) {
  const RecentRates rates = RatesOf(statistics);
  const PageFigures& figures = statistics.figures;
  const double free =
      figures.capacity == 0 ? 0 : 100.0 * static_cast<double>(figures.free) / static_cast<double>(figures.capacity);
  if (rates.seconds == 0) return fmt::format("{:.1f} % are free", free);
  return fmt::format("{:.1f} zones a second die, {:.1f} are begun, {:.1f} of them by {}; {:.1f} % are free",
                     rates.zones_died, rates.AllBegun(), rates.zones_begun[static_cast<size_t>(wait.who)],
                     ZoneWriterName(wait.who), free);
}

}  // namespace

LatencyFigures LatencyFigures::Of(const PageHistogram& histogram) {
  LatencyFigures latency;
  latency.sum = histogram.sum;
  latency.max = histogram.max;
  latency.buckets = histogram.buckets;
  for (const uint64_t count : histogram.buckets) latency.count += count;
  return latency;
}

double LatencyFigures::Percentile(double percent) const {
  if (count == 0) return 0;
  const double rank = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count);
  double seen = 0;
  for (int i = 0; i < PageHistogram::kBuckets; ++i) {
    const auto in_bucket = static_cast<double>(buckets[static_cast<size_t>(i)]);
    if (in_bucket == 0 || seen + in_bucket < rank) {
      seen += in_bucket;
      continue;
    }
    const auto low = static_cast<double>(i == 0 ? 0 : PageHistogram::EndOf(i - 1));
    const bool last = i + 1 == PageHistogram::kBuckets;
    const double high = std::max(low, static_cast<double>(last ? max : PageHistogram::EndOf(i)));
    const double value = low + (high - low) * std::max(0.0, rank - seen) / in_bucket;
    return max > 0 ? std::min(value, static_cast<double>(max)) : value;
  }
  return static_cast<double>(max);
}

LatencyFigures LatencyFigures::Since(const LatencyFigures& before) const {
  LatencyFigures since;
  since.sum = Rise(before.sum, sum);
  since.max = max;
  for (size_t i = 0; i < buckets.size(); ++i) {
    since.buckets[i] = Rise(before.buckets[i], buckets[i]);
    since.count += since.buckets[i];
  }
  return since;
}

double SecondsSince(int64_t then_ns, int64_t now_ns) {
  if (then_ns >= now_ns) return 0;
  return static_cast<double>(static_cast<uint64_t>(now_ns) - static_cast<uint64_t>(then_ns)) /
         static_cast<double>(kSecondNs);
}

double RecentRates::AllBegun() const { return std::accumulate(zones_begun.begin(), zones_begun.end(), 0.0); }

RecentRates RatesOf(const Statistics& statistics) {
  RecentRates rates;
  if (statistics.history.empty()) return rates;
  const PageFigures& now = statistics.figures;
  const PageFigures& before = statistics.history.front();
  const double seconds = SecondsSince(before.taken_ns, now.taken_ns);
  if (seconds < kShortestSpan) return rates;
  const auto rate = [seconds](uint64_t then, uint64_t later) {
    return static_cast<double>(Rise(then, later)) / seconds;
  };
  rates.seconds = seconds;
  for (size_t c = 0; c < kIoClassCount; ++c) {
    rates.bytes_read[c] = rate(before.by_class[c].bytes_read, now.by_class[c].bytes_read);
    rates.bytes_written[c] = rate(before.by_class[c].bytes_written, now.by_class[c].bytes_written);
  }
  rates.user_bytes = rate(before.user_bytes_appended, now.user_bytes_appended);
  rates.zones_died = rate(before.zones_died, now.zones_died);
  rates.zones_reset = rate(before.zone_resets, now.zone_resets);
  for (size_t who = 0; who < kZoneWriterCount; ++who) {
    rates.zones_begun[who] = rate(before.zones_begun[who], now.zones_begun[who]);
  }
  return rates;
}

std::string ExplainWait(const WaitView& wait, const Statistics& statistics) {
  std::string why;
  switch (wait.reason) {
    case WaitReason::kActiveZone:
      why = WhyNoActiveZone(statistics);
      break;
    case WaitReason::kOpenZone:
      why = WhyNoOpenZone(statistics);
      break;
    default:
      why = WhyNoSpace(wait, statistics);
  }
  return fmt::format("{} waits for {}, since {:.1f} s: {}", ZoneWriterName(wait.who), Wanted(wait.reason),
                     SecondsSince(wait.since_ns, statistics.read_ns), why);
}

std::string DescribeEvent(const EventView& event) {
  switch (event.kind) {
    case PageEventKind::kReset:
      return fmt::format("zone {} was reset, {} written", event.zone, FormatSize(event.a));
    case PageEventKind::kFinish:
      return fmt::format("zone {} was finished, {} written", event.zone, FormatSize(event.a));
    case PageEventKind::kFailure:
      return fmt::format("a command for zone {} failed", event.zone);
    case PageEventKind::kCollection:
      return fmt::format("GC emptied {} zones, copied {}, gained {}", event.a, FormatSize(event.b),
                         FormatSize(event.c));
    case PageEventKind::kStall: {
      const WaitView wait = StallOf(event);
      return fmt::format("{} waited {:.3f} s for {}", ZoneWriterName(wait.who), static_cast<double>(event.b) / 1e9,
                         Wanted(wait.reason));
    }
    case PageEventKind::kCheckpoint:
      return fmt::format("a checkpoint was written, after {} of journal", FormatSize(event.a));
  }
  return "an event";
}

WaitView StallOf(const EventView& event) {
  const uint64_t who = std::min<uint64_t>(event.a >> 8 & 0xFF, kZoneWriterCount - 1);
  const uint64_t reason = std::min<uint64_t>(event.a & 0xFF, kWaitReasonCount - 1);
  const auto ns = static_cast<int64_t>(std::min<uint64_t>(event.b, INT64_MAX / 2));
  return {static_cast<ZoneWriter>(who), static_cast<WaitReason>(reason), std::max<int64_t>(event.at_ns, 0) - ns};
}

std::string_view ZonePhaseName(ZonePhase phase) {
  constexpr std::array<std::string_view, 9> kNames = {"empty",     "leased", "idle",    "finishing", "full",
                                                      "resetting", "failed", "retired", "offline"};
  return kNames[static_cast<size_t>(phase)];
}

std::string_view WaitReasonName(WaitReason reason) {
  constexpr std::array<std::string_view, kWaitReasonCount> kNames = {"reset",       "collection", "checkpoint",
                                                                     "active-zone", "open-zone",  "pace"};
  return kNames[static_cast<size_t>(reason)];
}

std::string_view PageEventName(PageEventKind kind) {
  constexpr std::array<std::string_view, kPageEventKinds> kNames = {"reset",      "finish", "failure",
                                                                    "collection", "stall",  "checkpoint"};
  return kNames[static_cast<size_t>(kind) - 1];
}

}  // namespace isozone
