// Garbage collection schemes: when to collect, which zones, how to read them, and what the survivors become. One small
// class for each, chosen by name; pure, so that the collector, `isozone gc plan` and the tests drive the same one.
//
//   none       nothing is collected: zones are reset when all in them has died
//   zenfs      ZenFS 2.1's own (ZenFS::GCWorker): looks every 10 s; with less than 20 % free, full zones whose garbage is
//              above 100 - 3 x (20 - free) percent. Tables only, into zones that are partly written; nobody waits for it
//   full       ZenFS+ (section IV.D) with its full GC alone: below 10 % free, zones of lower levels first, of each level
//              those with the least valid data, until 10 % are free. Dead zones wait for their turn among them
//   zenfs+     the same, and the minor GC: zones in which nothing is valid are reset without waiting for the full GC. The
//              paper looks for them every 10 s, a moment on its 2 TB; here they are reset when they die, so that small
//              devices behave as large ones do
//   lifetime   Lifetime (section 4.2): looks every second; below 25 % free, N = Z_t / (1 + Z_e) victims from the first
//              L = 4 / (1 + E / 5) of four queues by valid data; in a queue the least valid first, then the longest-lived
//   lsm-zgc    LSM_ZGC (section 3): zones of the lowest utilisation first; reads segment by segment; survivors apart by
//              heat. The paper leaves the trigger to the user: `start` percent
//   isozone    the default: below `start` percent, paced; victims by what a byte of free space costs, and what is
//              expected to die soon is waited for; survivors apart
//
// Where the papers are silent: a percentage is of all bytes that files can have; E is it for empty zones. "When space is
// below" is looked at ten times a second. A scheme never takes a zone in which nothing has died.
//
// Thread safety: const, any thread.
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
#include "zone/data_class.h"

namespace isozone {

// A zone that could be collected: nobody writes it, and what is dead in it is more than the padding of blocks.
struct GcCandidate {
  ZoneId zone;
  // Bytes that survivors take, in whole blocks: less than `written`, so that collecting it gains something. 0: dead,
  // where dead zones are not reset at once.
  uint64_t valid = 0;
  uint64_t written = 0;   // bytes up to its write pointer
  uint64_t capacity = 0;  // bytes
  DataClass data;
  uint32_t group = 0;  // independent zone group
  bool full = true;    // else it has room, and costs an active zone
  double utilisation() const { return static_cast<double>(valid) / static_cast<double>(capacity); }
};

struct GcSpace {
  uint32_t zones = 0;  // that files can have
  uint32_t empty_zones = 0;
  uint64_t capacity = 0;  // bytes of these zones
  uint64_t free = 0;      // bytes that can be written: empty zones, those being reset, the rest of partly written ones
  bool wanted = false;    // somebody waits for space
  bool paced = false;     // a user is held up until the collector, and nobody else, has written more
  double free_percent() const {
    return capacity == 0 ? 0 : 100.0 * static_cast<double>(free) / static_cast<double>(capacity);
  }
  double empty_percent() const { return zones == 0 ? 0 : 100.0 * empty_zones / zones; }
};

// What users may change of a scheme.
struct GcTuning {
  std::optional<uint32_t> start_percent;  // free space below which it collects; the scheme's own by default
  bool dynamic_victims = true;            // `lifetime`: its two equations; false: one victim, of any queue
  double cold_threshold = 0.4;            // `lsm-zgc`: a segment with more valid data is cold
  uint32_t group_blocks = 16;             // `lsm-zgc`: from so many valid blocks on, a segment is read whole
};

class GcScheme {
 public:
  virtual ~GcScheme() = default;
  virtual std::string_view name() const = 0;
  // How often to look whether there is something to do; somebody who waits for space wakes the collector at once.
  virtual int64_t interval_ns() const = 0;
  // False: it chooses nothing, whatever the space.
  virtual bool automatic() const { return true; }
  // Dead zones are reset as soon as they are dead; else they are candidates like others, and are reset when the scheme
  // chooses them, or somebody waits for space.
  virtual bool resets_at_once() const { return true; }
  // Who has no space waits for it; else writers fail at once.
  virtual bool writers_wait() const { return true; }
  // What it collects by itself is confined: tables only, into zones that are partly written already; what finds no room
  // there stays where it is, until the next look.
  virtual bool confined() const { return false; }
  // Only the first victims of a decision are collected, as many as are copied together; then it decides again, as long as
  // there is something to gain. Else all of them are, and it decides when it looks.
  virtual bool decides_again() const { return false; }
  // How much of the time the collector may work now: 0 < urgency <= 1. It rests in between.
  virtual double Urgency(const GcSpace& /*space*/) const { return 1; }
  // Percent of free space below which writers are slowed down a little, for a scheme that paces itself. 0: never.
  virtual double throttle_below() const { return 0; }
  // Reads whole segments where that pays (segment_plan.h), else runs of valid blocks.
  virtual bool reads_segments() const { return false; }
  // What the survivors of a victim become.
  virtual ZoneHeat Survivor(ZoneHeat victim, bool /*cold_segment*/) const { return victim; }
  // There is so little space that it may choose something: who looks often need not list the candidates before.
  virtual bool Due(const GcSpace& space) const = 0;
  // Victims now, in the order in which they are to be collected; none where none is due or worth it. `candidates` in any
  // order.
  std::vector<ZoneId> Decide(const GcSpace& space, std::span<const GcCandidate> candidates) const {
    return Due(space) ? Choose(space, candidates) : std::vector<ZoneId>();
  }
  // Victims for somebody who has asked for a collection, whatever the space: all, in the scheme's order.
  virtual std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const = 0;

 protected:
  // Decide, where it is due.
  virtual std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const = 0;
};

// kInvalidArgument names the known schemes.
Result<std::unique_ptr<GcScheme>> MakeGcScheme(std::string_view name, const GcTuning& tuning);
// All that it knows.
std::vector<std::string_view> GcSchemeNames();

}  // namespace isozone
