// Garbage collection schemes: when to collect, which zones, how to read them, and what the survivors become. Each
// scheme is one small class, chosen by name. It is pure, so the collector, `isozone gc plan` and the tests use the same
// one.
//
//   none       collects nothing: a zone is reset when all data in it has died
//   zenfs      the collector of ZenFS 2.1 (ZenFS::GCWorker): looks every 10 s; with less than 20 % free, collects full
//              zones whose garbage is above 100 - 3 x (20 - free) percent. Moves tables only, into zones that are
//              partly written. No writer waits for it
//   full       the full GC of ZenFS+ (section IV.D) alone: below 10 % free, zones of lower levels first, of each level
//              those with the least valid data, until 10 % are free. Dead zones wait for their turn among them
//   zenfs+     the full GC and the minor GC of ZenFS+: a zone without valid data is reset without waiting for the full
//              GC. The paper looks for such zones every 10 s, a short time on its 2 TB. Here they are reset when they
//              die, so that small devices behave like large ones
//   lifetime   Lifetime (section 4.2): looks every second; below 25 % free, N = Z_t / (1 + Z_e) victims from the first
//              L = 4 / (1 + E / 5) of four queues by valid data; in a queue, zones with the least valid data first,
//              then those with the longest lifetime
//   lsm-zgc    LSM_ZGC (section 3): zones of the lowest utilisation first; reads segment by segment; keeps survivors
//              apart by heat. The paper leaves the trigger to the user: `start` percent
//   isozone    the default: begins below `start` percent, and paces itself; chooses victims by the cost of a byte of
//              free space, waits for data that is expected to die soon (by its level in an LSM tree, other data by its
//              age), and keeps survivors apart
//
// Where the papers do not say it: a percentage refers to all bytes that files can have; E is the percentage of empty
// zones. "When space is below" is checked ten times a second. No scheme takes a zone in which nothing has died.
//
// Thread safety: immutable; any thread may call any method.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "device/zoned_device.h"
#include "store/zone/data_class.h"

namespace isozone {

// A zone that could be collected: no writer uses it, and its dead bytes are more than the padding of blocks.
struct GcCandidate {
  ZoneId zone;
  // Bytes that its survivors take, in whole blocks: less than `written`, so that collecting it gains something. 0 for a
  // dead zone, if dead zones are not reset at once.
  uint64_t valid = 0;
  uint64_t written = 0;   // bytes up to its write pointer
  uint64_t capacity = 0;  // bytes
  uint64_t age = 0;       // bytes that were written to all zones after its last write, as far as is known
  DataClass data;
  uint32_t group = 0;  // independent zone group
  bool full = true;    // if not, the zone has room, and takes an active zone of the device
  double utilisation() const { return static_cast<double>(valid) / static_cast<double>(capacity); }
};

struct GcSpace {
  uint32_t zones = 0;  // that files can have
  uint32_t empty_zones = 0;
  uint64_t capacity = 0;  // bytes of these zones
  uint64_t free = 0;      // bytes that can be written: empty zones, those being reset, the rest of partly written ones
  bool wanted = false;    // a writer waits for space
  bool paced = false;     // a user's write waits until the collector has written more, and nothing else could end that
  double free_percent() const {
    return capacity == 0 ? 0 : 100.0 * static_cast<double>(free) / static_cast<double>(capacity);
  }
  double empty_percent() const { return zones == 0 ? 0 : 100.0 * empty_zones / zones; }
};

// The parameters of schemes that users may change.
struct GcTuning {
  std::optional<uint32_t> start_percent;  // free space below which it collects; the scheme's own by default
  bool dynamic_victims = true;            // `lifetime`: its two equations; false: one victim, of any queue
  double cold_threshold = 0.4;            // `lsm-zgc`: a segment with more valid data is cold
  uint32_t group_blocks = 16;             // `lsm-zgc`: a segment with at least so many valid blocks is read in groups
};

class GcScheme {
 public:
  virtual ~GcScheme() = default;
  virtual std::string_view name() const = 0;
  // How often to check whether there is something to do. A writer that waits for space wakes the collector at once.
  virtual int64_t interval_ns() const = 0;
  // False: the scheme chooses nothing, whatever the space.
  virtual bool automatic() const { return true; }
  // True: dead zones are reset as soon as they are dead. False: they are candidates like others, and are reset when the
  // scheme chooses them, or when a writer waits for space.
  virtual bool resets_at_once() const { return true; }
  // True: a writer without space waits for the collector. False: its write fails at once.
  virtual bool writers_wait() const { return true; }
  // True: the collector's own rounds are confined. They move tables only, into zones that are partly written already.
  // Tables that find no room there stay where they are until the next look.
  virtual bool confined() const { return false; }
  // True: only the first victims of a decision are collected, as many as are copied together; then the scheme decides
  // again, as long as there is something to gain. False: all victims are collected, and it decides at the next look.
  virtual bool decides_again() const { return false; }
  // The share of the time in which the collector may work now: 0 < urgency <= 1. It rests in between.
  virtual double Urgency(const GcSpace& /*space*/) const { return 1; }
  // For a scheme that paces itself: the percentage of free space below which writers are slowed a little. 0: never.
  virtual double throttle_below() const { return 0; }
  // True: reads whole segments where that is worth it (segment_plan.h). False: reads runs of valid blocks.
  virtual bool reads_segments() const { return false; }
  // What the survivors of a victim become.
  virtual ZoneHeat Survivor(ZoneHeat victim, bool /*cold_segment*/) const { return victim; }
  // Whether there is so little space that the scheme may choose something. Saves listing the candidates at each look.
  virtual bool Due(const GcSpace& space) const = 0;
  // The victims to collect now, in order; none if no collection is due or no zone is worth it. `candidates` may be in
  // any order.
  std::vector<ZoneId> Decide(const GcSpace& space, std::span<const GcCandidate> candidates) const {
    return Due(space) ? Choose(space, candidates) : std::vector<ZoneId>();
  }
  // The victims of a collection that was asked for, whatever the space: all candidates, in the scheme's order.
  virtual std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const = 0;

 protected:
  // Decides once a collection is due.
  virtual std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const = 0;
};

// kInvalidArgument, with the known schemes.
Result<std::unique_ptr<GcScheme>> MakeGcScheme(std::string_view name, const GcTuning& tuning);
// The names of all schemes.
std::vector<std::string_view> GcSchemeNames();

}  // namespace isozone
