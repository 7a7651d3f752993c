// StatisticsReader: reads the statistics page of a device that is mounted by any process of this machine.
//
//   auto reader = StatisticsReader::Open("emu:/data/ssd.img");
//   if (reader.ok()) Show((*reader)->Read());
//
// The page is copied with pread(2) and not mapped, so that one that shrinks cannot end the reader (SIGBUS). It is taken
// three times: a record counts if its sequence is the same, and even, in the first and the last copy; its words are those
// of the one in between. Figures that were being written each time are read again.
//
// Nothing in a page is believed: any content gives Statistics, of which numbers may be nonsense, enumerators are valid,
// sizes of vectors are bounded by the size of the file, and text is printable or not (the caller's task).
//
// Thread safety: any thread may call any method of StatisticsReader. Statistics are values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "stats/page_file.h"
#include "stats/page_layout.h"

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

  double Mean() const { return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count); }
  // The value that `percent` (0..100) of the values do not exceed, by interpolation within its bucket, which is a quarter
  // of a power of two wide; 0 if there are none.
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
  // Device bytes written over user bytes appended; 0 before the first append.
  double WriteAmplification() const;
};

// A rate over the last seconds, from the history of one look: so no second look is needed.
struct RecentRates {
  double seconds = 0;                                 // that the history spans; 0: too short to tell, and all else is 0
  std::array<double, kIoClassCount> bytes_read{};     // a second
  std::array<double, kIoClassCount> bytes_written{};  // a second
  double user_bytes = 0;                              // appended a second
  double zones_died = 0;                              // a second
  double zones_reset = 0;                             // a second
  std::array<double, kZoneWriterCount> zones_begun{};  // a second, by who began them
};
RecentRates RatesOf(const Statistics& statistics);
// "flush waits for space since 0.3 s: 3.0 zones a second die, flush begins 5.1"
std::string ExplainWait(const WaitView& wait, const Statistics& statistics);

std::string_view ZonePhaseName(ZonePhase phase);     // "empty", "leased", "idle", ...
std::string_view WaitReasonName(WaitReason reason);  // "reset", "collection", ...
std::string_view PageEventName(PageEventKind kind);  // "reset", "finish", ...

// The copies of a page that one look takes: three times the part before the zones, and the zones once.
struct PageCopies {
  std::array<std::span<const std::byte>, 3>
      fixed;  // each PageLayout::Zones(groups) bytes, or fewer where the file is short
  std::span<const std::byte> zones;
};
// Whether `header`, the beginning of a file of `file_bytes` bytes, is that of a page of this version: kCorruption,
// kNotSupported. Pure.
Result<PageHeader> CheckHeader(std::span<const std::byte> header, uint64_t file_bytes);
// What the copies say; `life`, `process.program` and `read_ns` are the caller's. kBusy if the figures were being written
// in each. Pure.
Result<Statistics> DecodePage(const PageHeader& header, const PageCopies& copies);

class StatisticsReader {
 public:
  // `device`: as PageOwner::Of. kNotFound: nobody has it mounted, or it does not exist. kNotSupported: a page of another
  // version. kPermissionDenied; kCorruption. Each message is one line.
  static Result<std::unique_ptr<StatisticsReader>> Open(const std::string& device,
                                                        const std::string& directory = kPageDirectory);

  // A look now. kBusy after many vain tries; kIoError.
  Result<Statistics> Read() const;
  PageLife Life() const;
  // Removes the page of a process that died; nothing if it lives, or if another page has taken its place. An error means
  // that this user may not.
  Status RemoveDead() const;

 private:
  StatisticsReader(std::string path, FileDescriptor fd, const PageHeader& header);

  const std::string path_;
  const FileDescriptor fd_;
  const PageHeader header_;
};

}  // namespace isozone
