// Statistics: one look at the statistics page of a mount (page_reader.h), as values, and what follows from them.
//
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "insight/stats/page_file.h"
#include "insight/stats/page_layout.h"

namespace isozone {

enum class PageLife : uint8_t {
  kMounted,    // its process lives and publishes
  kUnmounted,  // the mount has ended since the page was opened
  kDied,       // its process died without unmounting: this is what it did last
};

// A latency distribution since the mount, in ns.
struct LatencyFigures {
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t max = 0;
  std::array<uint64_t, PageHistogram::kBuckets> buckets{};

  static LatencyFigures Of(const PageHistogram& histogram);
  double Mean() const { return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count); }
  // The value that `percent` (0..100) of the values do not exceed, by interpolation within its bucket, which is a
  // quarter of a power of two wide; 0 if there are none.
  double Percentile(double percent) const;
  // What came since `before`, an earlier look at the same distribution. `max` is that since the mount.
  LatencyFigures Since(const LatencyFigures& before) const;
};

struct GroupQueue {
  uint32_t at_device = 0;  // requests
  uint32_t waiting = 0;    // requests
};

struct WaitView {
  ZoneWriter who = ZoneWriter::kOther;
  WaitReason reason = WaitReason::kReset;
  int64_t since_ns = 0;  // CLOCK_MONOTONIC
};

struct EventView {
  uint64_t number = 0;  // rises by one from event to event of a mount
  PageEventKind kind = PageEventKind::kReset;
  int64_t at_ns = 0;  // CLOCK_MONOTONIC
  uint32_t zone = 0;
  uint64_t a = 0;  // as PageEventKind says
  uint64_t b = 0;
  uint64_t c = 0;
};

struct MessageView {
  uint64_t number = 0;
  uint64_t at_s = 0;  // seconds since 1970
  std::string text;
};

// One look at a mount.
struct Statistics {
  PageLife life = PageLife::kMounted;

  // Who and what.
  PageProcess process;
  uint64_t mounted_s = 0;  // seconds since 1970
  int64_t mounted_ns = 0;  // CLOCK_MONOTONIC
  int64_t read_ns = 0;     // CLOCK_MONOTONIC, when the page was read
  std::string device;
  std::string uuid;
  std::string label;
  std::string policy;
  std::string gc_scheme;
  uint32_t block_size = 0;
  uint64_t zone_size = 0;
  uint64_t zone_capacity = 0;
  uint32_t max_open_zones = 0;    // 0: no limit
  uint32_t max_active_zones = 0;  // 0: no limit
  bool groups_measured = false;
  uint64_t age_unit = 0;  // bytes

  PageFigures figures{};
  std::vector<PageFigures> history;                   // one a second, the oldest first, at most PageLayout::kHistory
  std::array<LatencyFigures, kHistograms> latencies;  // by PageHistogramId
  std::vector<GroupQueue> groups;
  std::vector<PageZone> zones;
  std::vector<ZoneRead> reads;        // in no order
  std::vector<WaitView> waits;        // now, who waits longest first
  std::vector<EventView> events;      // the oldest first
  std::vector<MessageView> messages;  // the oldest first
  uint32_t torn = 0;                  // records that were left out, because they were being written

  const LatencyFigures& Reads(IoClass c) const { return latencies[static_cast<size_t>(c)]; }
  const LatencyFigures& Writes(IoClass c) const { return latencies[kIoClassCount + static_cast<size_t>(c)]; }
  const LatencyFigures& Latency(PageHistogramId id) const { return latencies[static_cast<size_t>(id)]; }
  const LatencyFigures& DeletionDelay(Lifetime lifetime) const {
    return latencies[static_cast<size_t>(PageHistogramId::kDeletionDelay) + static_cast<size_t>(lifetime)];
  }
};

// A rate over the last seconds, from the history of one look: so no second look is needed.
struct RecentRates {
  double seconds = 0;                                 // that the history spans; 0: too short to tell, and all else is 0
  std::array<double, kIoClassCount> bytes_read{};     // a second
  std::array<double, kIoClassCount> bytes_written{};  // a second
  double user_bytes = 0;                              // written by programs, a second
  double zones_died = 0;                              // a second
  double zones_reset = 0;                             // a second
  std::array<double, kZoneWriterCount> zones_begun{};  // a second, by who began them

  double AllBegun() const;
};
RecentRates RatesOf(const Statistics& statistics);
// Returns the seconds from `then_ns` to `now_ns`; 0 if `then_ns` is not before `now_ns`.
double SecondsSince(int64_t then_ns, int64_t now_ns);
// What somebody waits for, since when, and why that is not there, in one line: "flush waits for GC to
// make space, since 0.3 s: 3.0 zones a second die, 5.1 are begun, 2.0 of them by flush; 4.2 % are free".
std::string ExplainWait(const WaitView& wait, const Statistics& statistics);
// The wait that an event of the kind kStall ended.
WaitView StallOf(const EventView& event);
// An event in words: "zone 12 was reset, 64.0 MiB written".
std::string DescribeEvent(const EventView& event);

std::string_view ZonePhaseName(ZonePhase phase);     // "empty", "leased", "idle", ...
std::string_view WaitReasonName(WaitReason reason);  // "reset", "collection", ...
std::string_view PageEventName(PageEventKind kind);  // "reset", "finish", ...

}  // namespace isozone
