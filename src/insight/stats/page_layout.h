// The statistics page: what a mount tells the rest of the machine while it runs, in a file of memory that others read
// without touching the process. docs/statistics.md explains it to users; this is its format, version kPageVersion.
//
//   PageHeader                  who publishes, and of what. Complete before the page has its name, never changed
//   state                       1 word, PageState
//   PageFigures, kLatest times  counters and sums, about ten times a second, in turn
//   PageFigures, kHistory times the same once a second, in turn: rates of the last seconds follow from one look
//   PageHistogram, kHistograms  latencies since the mount, as often as the figures
//   PageWait, kWaits times      who waits now, and for what
//   PageEvent, kEvents times    the last events
//   PageMessage, kMessages      the last errors, in words
//   reads, kReads words         zones that background reads have touched lately (store/io/recent_reads.h)
//   groups                      1 word for each zone group: requests at the device, requests that wait
//   zones                       2 words for each zone (PackZone)
//
// Everything is a little-endian word of 64 bits and is stored and loaded as one. Zones, waits, events and messages are
// written as they happen, so that they are those of the last instant even after `kill -9`; the figures are then at most
// kFiguresIntervalNs old, and whole.
//
// Sequence locks. What takes several words that belong together is a *record*: its first word is its sequence, even
// while it is at rest and odd while it is written; 0 means that it was never written. A writer makes the sequence odd
// (if another thread is writing the record, what was to be written is dropped and counted), stores the words, and
// makes it even again: nobody ever waits. A reader takes the record only if the sequence was the same, and even, before
// and after it took the words. A process that is killed between the two leaves one odd record, which is never taken;
// of the figures there is then the copy before. Histograms, groups, reads and zones are no records: each of their words
// is true by itself, and the two words of a zone are a moment apart at most.
//
// A reader demands the same version, and sizes that follow from the numbers of zones and groups. It believes nothing
// else: any bytes give figures that may be nonsense, and no error (page_reader.h).
//
// Thread safety: plain types and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/zoned_device.h"
#include "insight/stats/figures.h"
#include "store/io/io_class.h"
#include "store/io/recent_reads.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_record.h"

namespace isozone {

inline constexpr uint64_t kPageMagic = 0x4547415054534F5A;  // "ZOSTPAGE" in memory
inline constexpr uint32_t kPageVersion = 3;
inline constexpr int64_t kFiguresIntervalNs = 100'000'000;
inline constexpr int64_t kHistoryIntervalNs = 1'000'000'000;

enum class PageState : uint64_t { kMounted = 1, kUnmounted = 2 };

// How every file of shared memory begins that a mount makes: this page, and its kept memory (store/kept).
struct SharedFileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;              // in its own name space
  uint64_t bytes;            // of the file
  uint64_t process_started;  // clock ticks after the boot: field 22 of /proc/PID/stat
  uint64_t pid_namespace;    // inode of /proc/self/ns/pid
};

// Begins as SharedFileHeader. Text is cut where it does not fit, and ends with a zero byte.
struct PageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;              // in its own name space
  uint64_t bytes;            // of the page
  uint64_t process_started;  // clock ticks after the boot: field 22 of /proc/PID/stat
  uint64_t pid_namespace;    // inode of /proc/self/ns/pid
  uint64_t mounted_s;        // seconds since 1970
  int64_t mounted_ns;        // CLOCK_MONOTONIC
  uint32_t zone_count;
  uint32_t group_count;
  uint32_t groups_measured;  // 1: the groups were measured, or no zone slows another; 0: nothing is known
  uint32_t block_size;       // bytes
  uint32_t max_open_zones;   // 0: no limit
  uint32_t max_active_zones;
  uint64_t zone_size;      // bytes
  uint64_t zone_capacity;  // bytes
  uint64_t age_unit;       // bytes: see PageZone::written_at
  std::array<char, 256> device;
  std::array<char, 40> uuid;
  std::array<char, 64> label;
  std::array<char, 24> policy;
  std::array<char, 24> gc_scheme;  // at the mount
  std::array<char, 64> program;    // the name of the process
};

struct PageStamp {
  uint64_t sequence = 0;  // rises from one to the next, also from place to place
  int64_t taken_ns = 0;   // CLOCK_MONOTONIC
  uint64_t taken_s = 0;   // seconds since 1970
};
struct PageFigures : PageStamp, Figures {};

// Values are in nanoseconds. Bucket 0 has all below 2^kFirstPower; then there are kSubBuckets to each power of two; the
// last one has the rest.
struct PageHistogram {
  static constexpr int kFirstPower = 8;  // 256 ns
  static constexpr int kLastPower = 35;  // 34 s
  static constexpr int kSubBuckets = 4;
  static constexpr int kBuckets = (kLastPower - kFirstPower) * kSubBuckets + 2;

  uint64_t sum;
  uint64_t max;
  std::array<uint64_t, kBuckets> buckets;

  // The first value above bucket `i`, which is not the last.
  static constexpr uint64_t EndOf(int i) {
    const int power = kFirstPower + i / kSubBuckets;
    return (uint64_t{1} << power) + (uint64_t{1} << power) / kSubBuckets * static_cast<uint64_t>(i % kSubBuckets);
  }
};
// Read and write latencies by IoClass, then these.
enum class PageHistogramId : uint8_t {
  kReads = 0,                     // + IoClass
  kWrites = kIoClassCount,        // + IoClass
  kZoneWait = 2 * kIoClassCount,  // of those who asked for a zone
  kWriteGapWait,                  // of background writes, while users read
  kPaceWait,                      // of users' writes, while space is short
  kDeletionDelay,                 // + Lifetime: from a file's removal to the reset of a zone that it lay in
};
inline constexpr int kHistograms = static_cast<int>(PageHistogramId::kDeletionDelay) + kLifetimeCount;

struct PageWait {
  uint64_t sequence;
  uint64_t who_and_why;  // 0: nobody; else 1 << 16 | ZoneWriter << 8 | WaitReason
  int64_t since_ns;      // CLOCK_MONOTONIC
};

enum class PageEventKind : uint8_t {
  kReset = 1,   // of `zone`, of which `a` bytes were written
  kFinish,      // of `zone`, of which `a` bytes were written
  kFailure,     // of a write, reset or finish of `zone`
  kCollection,  // a round has ended: `a` zones were emptied, `b` bytes copied, `c` bytes reclaimed
  kStall,       // a wait of at least kLongStallNs has ended: `a` as PageWait::who_and_why, `b` ns
  kCheckpoint,  // `a` bytes of journal until then
};
inline constexpr int kPageEventKinds = 6;
inline constexpr int64_t kLongStallNs = 1'000'000;

struct PageEvent {
  uint64_t sequence;       // 2 * its number + 2, where the first event of the mount has the number 0
  int64_t at_ns;           // CLOCK_MONOTONIC
  uint64_t kind_and_zone;  // PageEventKind << 32 | zone
  uint64_t a;
  uint64_t b;
  uint64_t c;
};

struct PageMessage {
  uint64_t sequence;  // as that of events
  uint64_t at_s;      // seconds since 1970
  std::array<char, 240> text;
};

// Where everything lies, in bytes from the beginning.
struct PageLayout {
  static constexpr size_t kLatest = 2;
  static constexpr size_t kHistory = 12;
  static constexpr size_t kWaits = 32;
  static constexpr size_t kEvents = 256;
  static constexpr size_t kMessages = 16;
  static constexpr size_t kReads = RecentReads::kPlaces;
  // No device has more; a header that says so is not believed.
  static constexpr uint32_t kMostZones = 1U << 24U;
  static constexpr uint32_t kMostGroups = 1U << 16U;

  static constexpr size_t kState = sizeof(PageHeader);
  static constexpr size_t kFigures = kState + sizeof(uint64_t);
  static constexpr size_t kPast = kFigures + kLatest * sizeof(PageFigures);
  static constexpr size_t kLatencies = kPast + kHistory * sizeof(PageFigures);
  static constexpr size_t kWaiting = kLatencies + kHistograms * sizeof(PageHistogram);
  static constexpr size_t kHappened = kWaiting + kWaits * sizeof(PageWait);
  static constexpr size_t kErrors = kHappened + kEvents * sizeof(PageEvent);
  static constexpr size_t kRecentReads = kErrors + kMessages * sizeof(PageMessage);
  static constexpr size_t kGroups = kRecentReads + kReads * sizeof(uint64_t);

  static constexpr size_t kZoneBytes = 2 * sizeof(uint64_t);
  static constexpr size_t Zones(uint32_t groups) { return kGroups + groups * sizeof(uint64_t); }
  static constexpr size_t Size(uint32_t zones, uint32_t groups) { return Zones(groups) + zones * kZoneBytes; }
};

static_assert(sizeof(PageHeader) == 576);
static_assert(offsetof(PageHeader, pid) == offsetof(SharedFileHeader, pid) &&
              offsetof(PageHeader, process_started) == offsetof(SharedFileHeader, process_started) &&
              offsetof(PageHeader, pid_namespace) == offsetof(SharedFileHeader, pid_namespace));
static_assert(std::is_trivially_copyable_v<PageFigures> && sizeof(PageFigures) == sizeof(PageStamp) + sizeof(Figures) &&
              sizeof(PageHistogram) == 112 * sizeof(uint64_t));
static_assert(sizeof(PageWait) == 24 && sizeof(PageEvent) == 48 && sizeof(PageMessage) == 256);

// One zone, as it is packed.
//
//   word 0   write pointer : 32 | live : 32                  both in blocks; live bytes are rounded up
//   word 1   phase : 4 | use : 3 | lifetime : 3 | heat : 2 | level + 1 : 6 | writer : 3 | victim : 1 | sealed : 1 |
//            kept : 1 | group : 16 | written at : 24         from the lowest bit on
struct PageZone {
  static constexpr uint32_t kAges = 1U << 24U;
  static constexpr int kMostLevel = 62;

  uint32_t write_pointer = 0;  // blocks from the start of the zone
  uint32_t live = 0;           // blocks, rounded up
  ZonePhase phase = ZonePhase::kEmpty;
  ZoneUse use = ZoneUse::kFree;
  DataClass data;
  ZoneWriter writer = ZoneWriter::kNone;  // who holds the zone, while it is leased
  bool victim = false;                    // being collected
  bool sealed = false;                    // its cohort is sealed
  bool kept = false;                      // for metadata
  uint16_t group = 0;
  // When it was last written, in PageHeader::age_unit of bytes written to all zones since the mount, modulo kAges; 0:
  // not since the mount.
  uint32_t written_at = 0;
  bool operator==(const PageZone&) const = default;
};
using ZoneWords = std::array<uint64_t, 2>;
ZoneWords PackZone(const PageZone& zone);
// Any words give a zone with valid enumerators.
PageZone UnpackZone(const ZoneWords& words);
PageZone PageZoneOf(const ZoneRecord& zone, uint16_t group, uint32_t block_size, uint64_t age_unit);

}  // namespace isozone
