// LogPace: decides which of its zones a log that is synced at every write uses next.
//
// A thread waits for each frame of such a log, so frames are written one after another, and a frame is durable as soon
// as it is in the device's buffer. But a zone lies on flash that programs one unit at a time, and its buffer holds few
// units: a log that fills units faster than they are programmed would wait for a whole program at every unit. So the
// log is spread over as many zones as its speed needs, with a unit in each in turn:
//
//   unit       What the flash of a zone programs at once. Programming takes unit / bandwidth of a zone.
//   backlog    How long the flash of a zone still has to program what this log wrote, as far as the host can tell.
//   the rule   At the end of a unit, the log stays in its zone if the backlog is one unit at most: that unit is
//              programmed while the next one is filled. Otherwise it goes to the zone with the least backlog, if that
//              is one unit at most, or to a new zone; if there is none, to the zone with the least backlog.
//
// A slow log stays in one zone, and so takes one active zone and one region.
//
// Pure: takes times, and has no clock. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace isozone {

class LogPace {
 public:
  // The state of one zone since the log writes to it.
  struct Zone {
    uint64_t in_unit = 0;    // bytes of the unit that is being filled
    int64_t idle_at_ns = 0;  // when the flash has programmed all units before it
  };

  // `unit` is in bytes, and `bandwidth` in bytes a second that the flash of a zone programs; both are more than 0.
  LogPace(uint64_t unit, uint64_t bandwidth)
      : unit_(unit),
        program_ns_(static_cast<int64_t>(static_cast<double>(unit) / static_cast<double>(bandwidth) * kSecondNs)) {}

  // Notes that `bytes` more are written to the zone. Returns true if a unit has ended with them, so that the rule must
  // be applied.
  bool OnWrite(Zone& zone, uint64_t bytes, int64_t now_ns) const {
    zone.in_unit += bytes;
    if (zone.in_unit < unit_) return false;
    const auto units = static_cast<int64_t>(zone.in_unit / unit_);
    zone.in_unit %= unit_;
    zone.idle_at_ns = std::max(zone.idle_at_ns, now_ns) + units * program_ns_;
    return true;
  }

  int64_t BacklogNs(const Zone& zone, int64_t now_ns) const { return std::max<int64_t>(0, zone.idle_at_ns - now_ns); }
  // Returns whether the zone can take a unit without waiting for an earlier one.
  bool HasRoom(const Zone& zone, int64_t now_ns) const { return BacklogNs(zone, now_ns) <= program_ns_; }

 private:
  const uint64_t unit_;
  const int64_t program_ns_;
};

}  // namespace isozone
