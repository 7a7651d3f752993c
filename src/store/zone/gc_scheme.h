// Garbage collection schemes: when to collect, which zones, how to read them, and what the survivors become. Each
// scheme is one small class, chosen by name. It is pure, so the collector, `isozone gc status` and the tests use the
// same one.
//
//   isozone    the default: begins below `start` percent, and paces itself (isozone_gc.h)
//   none       collects nothing: a zone is reset when all data in it has died
//
// Those of the papers, for comparison, are in published/: zenfs, full, zenfs+, lifetime, lifetime-one-victim, lsm-zgc.
//
// Where the papers do not say it: a percentage refers to all bytes that files can have; E is the percentage of empty
// zones. "When space is below" is checked ten times a second. No scheme takes a zone in which nothing has died.
//
// Thread safety: immutable; any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
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

// The space that there is, and the demand for it.
struct GcSpace {
  uint32_t zones = 0;  // that files can have
  uint32_t empty_zones = 0;
  uint64_t capacity = 0;  // bytes of these zones
  uint64_t free = 0;      // bytes that can be written: empty zones, those being reset, the rest of partly written ones
  uint32_t leased = 0;    // zones that are being written
  std::optional<uint64_t> swing = {};  // bytes by which free space falls before it comes back by itself; none: unknown
  bool wanted = false;                 // a writer waits for space
  bool paced = false;  // a user's write waits until the collector has written more, and nothing else could end that
  double free_percent() const {
    return capacity == 0 ? 0 : 100.0 * static_cast<double>(free) / static_cast<double>(capacity);
  }
  double empty_percent() const { return zones == 0 ? 0 : 100.0 * empty_zones / zones; }
};

// Returns the percentage of free space below which writers are slowed.
using ThrottleRule = std::function<double(const GcSpace&)>;

class GcScheme {
 public:
  virtual ~GcScheme() = default;
  virtual std::string_view name() const = 0;
  // Returns how often to check whether there is something to do. A writer that waits for space wakes the collector at
  // once.
  virtual int64_t interval_ns() const = 0;
  // Whether the scheme chooses anything by itself. If not, only rounds that are asked for collect.
  virtual bool automatic() const { return true; }
  // Whether dead zones are reset as soon as they are dead. If not, they are candidates like others, and are reset when
  // the scheme chooses them, or when a writer waits for space.
  virtual bool resets_at_once() const { return true; }
  // Whether a writer without space waits for the collector. If not, its write fails at once.
  virtual bool writers_wait() const { return true; }
  // Whether the collector's own rounds are confined: then they move tables only, into zones that are partly written
  // already. Tables that find no room there stay where they are until the next look.
  virtual bool confined() const { return false; }
  // Whether only the first victims of a decision are collected, as many as are copied together, and the scheme then
  // decides again, as long as there is something to gain. If not, all victims are collected, and it decides at the next
  // look.
  virtual bool decides_again() const { return false; }
  // Returns the share of the time in which the collector may work now: 0 < urgency <= 1. It rests in between.
  virtual double Urgency(const GcSpace& /*space*/) const { return 1; }
  // Returns the percentage of free space below which writers are slowed a little, for a scheme that paces itself; 0 if
  // they never are.
  virtual double ThrottleBelow(const GcSpace& /*space*/) const { return 0; }
  // Whether whole segments are read where that is worth it (segment_plan.h). If not, runs of valid blocks are read.
  virtual bool reads_segments() const { return false; }
  // Returns the heat that the survivors of a victim get.
  virtual ZoneHeat Survivor(ZoneHeat victim, bool /*cold_segment*/) const { return victim; }
  // Whether there is so little space that the scheme may choose something. It saves listing the candidates at each
  // look.
  virtual bool Due(const GcSpace& space) const = 0;
  // Returns the victims to collect now, in order; none if no GC is due or no zone is worth it. `candidates` may be in
  // any order.
  std::vector<ZoneId> Decide(const GcSpace& space, std::span<const GcCandidate> candidates) const {
    return Due(space) ? Choose(space, candidates) : std::vector<ZoneId>();
  }
  // Returns the victims of a round that was asked for, whatever the space: all candidates, in the scheme's order.
  virtual std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const = 0;

 protected:
  // Returns the victims to collect now, given that GC is due.
  virtual std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const = 0;
};

// Makes the scheme `name`, which collects below `start_percent` of free space; below its own percentage where that is
// not given. kInvalidArgument, with the known schemes, for any other name.
Result<std::unique_ptr<GcScheme>> MakeGcScheme(std::string_view name, std::optional<uint32_t> start_percent);
// Returns the names of all schemes, the default first.
std::vector<std::string_view> GcSchemeNames();

}  // namespace isozone
