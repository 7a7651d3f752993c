// LogPace: to which of its zones a log that is synced at every write goes next.
//
// Somebody waits for each of its frames, so they go one behind the other, and a frame is durable as soon as it is in the
// device's buffer. But a zone lies on flash that programs one unit at a time, and its buffer holds few of them: a log that
// fills units faster than they are programmed would wait for a whole program, at every unit. So it is spread over as many
// zones as its speed asks for, a unit in each in turn:
//
//   unit       what the flash of a zone programs at once; it takes unit / bandwidth of a zone.
//   backlog    of a zone: how long its flash has to program what this log filled, as far as the host can tell.
//   the rule   at the end of a unit the log stays in its zone if the backlog is one unit at most: that one is programmed
//              while the next one is filled. Else it goes to the zone with the least backlog, if that is as little, or to
//              a new one; where there is none, to the one with the least.
//
// A slow log stays in one zone, so that it takes one active zone and one region.
//
// Pure: takes times, and has no clock. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace isozone {

class LogPace {
 public:
  // Of one zone, since the log writes to it.
  struct Zone {
    uint64_t in_unit = 0;    // bytes of the unit that is being filled
    int64_t idle_at_ns = 0;  // when the flash has programmed all units before it
  };

  // `unit`: bytes, more than 0; `bandwidth`: bytes a second that the flash of a zone programs, more than 0.
  LogPace(uint64_t unit, uint64_t bandwidth)
      : unit_(unit),
        program_ns_(static_cast<int64_t>(static_cast<double>(unit) / static_cast<double>(bandwidth) * kSecondNs)) {}

  // `bytes` more are written to the zone. True: a unit has ended with them, and the rule is to be asked.
  bool OnWrite(Zone& zone, uint64_t bytes, int64_t now_ns) const {
    zone.in_unit += bytes;
    if (zone.in_unit < unit_) return false;
    const auto units = static_cast<int64_t>(zone.in_unit / unit_);
    zone.in_unit %= unit_;
    zone.idle_at_ns = std::max(zone.idle_at_ns, now_ns) + units * program_ns_;
    return true;
  }

  int64_t BacklogNs(const Zone& zone, int64_t now_ns) const { return std::max<int64_t>(0, zone.idle_at_ns - now_ns); }
  // It can be given a unit without waiting for one before it.
  bool HasRoom(const Zone& zone, int64_t now_ns) const { return BacklogNs(zone, now_ns) <= program_ns_; }

 private:
  const uint64_t unit_;
  const int64_t program_ns_;
};

}  // namespace isozone
